"""Tests of tools/run_doc: what it executes, where, and when it stops."""

import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("run_doc")
ROOT = SCRIPT.parent.parent


def run(document: str) -> tuple[int, str]:
    with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
        file.write(document)
        file.flush()
        done = subprocess.run([SCRIPT, file.name], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class RunDoc(unittest.TestCase):
    def test_bash_blocks_run_in_order_in_a_copy_of_the_tree(self) -> None:
        status, output = run(
            "Text.\n```bash\ntest -f tools/run_doc\necho made > run_doc_made\n```\n"
            "```sh\nexit 3\n```\n~~~~cpp\n```bash\nexit 4\n~~~~\n"
            "````bash\ncd tools\n````\n```bash title\ngit status --short\npwd\n```\n"
        )
        self.assertEqual(status, 0, output)
        self.assertIn("?? run_doc_made\n", output)
        self.assertFalse((ROOT / "run_doc_made").exists())
        copy = next(line for line in output.splitlines() if line.startswith("/"))
        self.assertFalse(Path(copy).exists(), "the copy is removed")

    def test_the_first_block_that_fails_is_printed_and_the_last(self) -> None:
        status, output = run("\n```bash\nfalse | true\n```\n\n```bash\necho reached\n```\n")
        self.assertEqual(status, 1)
        self.assertRegex(output, r"\.md:2: this block failed with exit code 1:\nfalse \| true\n")
        self.assertNotIn("reached", output)

    def test_blocks_get_no_input(self) -> None:
        self.assertEqual(run("```bash\n! read -r line\n```\n")[0], 0)

    def test_a_document_without_bash_or_with_an_open_block_is_refused(self) -> None:
        self.assertEqual(run("```sh\ntrue\n```\n")[0], 1)
        self.assertEqual(run("```bash\ntrue\n")[0], 1)
        self.assertEqual(run("```bash\ntrue\n~~~\n")[0], 1)


if __name__ == "__main__":
    unittest.main()

"""Tests of tools/seeded_faults, on a toy project whose build and tests are greps."""

import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("seeded_faults")

PROJECT = {
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.22)
project(toy NONE)
enable_testing()
set(value ${CMAKE_SOURCE_DIR}/value.txt)
add_custom_target(compile ALL COMMAND grep -q compiles ${value})
add_test(NAME Router.Weights COMMAND grep -q right ${value})
add_test(NAME Other.Thing COMMAND grep -q compiles ${value})
add_test(NAME "Case/Any.Model/a  # GetParam() = (1, b)" COMMAND grep -q right ${value})
""",
    "CMakePresets.json": """\
{ "version": 4, "configurePresets": [ { "name": "release", "generator": "Ninja",
  "binaryDir": "${sourceDir}/build/release" } ] }
""",
    ".gitignore": "/build/\n",
    "value.txt": "compiles\nright\n",
}


def patch(tests: str, new: str, old: str = "right") -> str:
    return (
        f"# tests: {tests}\n# What went wrong.\n"
        "diff --git a/value.txt b/value.txt\n--- a/value.txt\n+++ b/value.txt\n"
        f"@@ -1,2 +1,2 @@\n compiles\n-{old}\n+{new}\n"
    )


BREAKS_BUILD = (
    "# tests: Router\n--- a/value.txt\n+++ b/value.txt\n"
    "@@ -1,2 +1,2 @@\n-compiles\n+does not\n right\n"
)


def run(faults: dict[str, str], **changed: str) -> tuple[int, str, str]:
    """Exit code, output, and the toy's value.txt afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "tests" / "faults").mkdir(parents=True)
        for name, text in (PROJECT | changed).items():
            (root / name).write_text(text)
        for name, text in faults.items():
            (root / "tests" / "faults" / f"{name}.patch").write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        command = [SCRIPT, "--root", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr, (root / "value.txt").read_text()


class SeededFaults(unittest.TestCase):
    def test_faults_that_turn_a_test_red_pass_and_leave_no_trace(self) -> None:
        faults = {
            "one": patch("Router", "wrong"),
            "two": patch("Other|Router", "left"),
            "three": patch("Any.Model", "wrong"),
        }
        status, output, value = run(faults)
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"one +red .* Router\.Weights")
        self.assertRegex(output, r"three +red .* Case/Any\.Model/a\n")
        self.assertIn("3 of 3 faults turned a test red", output)
        self.assertEqual(value, PROJECT["value.txt"])

    def test_each_way_to_prove_nothing_fails_and_the_rest_still_runs(self) -> None:
        faults = {
            "a_unseen": patch("Other", "wrong"),
            "b_stale": patch("Router", "wrong", old="a line long gone"),
            "c_broken": BREAKS_BUILD,
            "d_good": patch("Router", "wrong"),
        }
        status, output, _ = run(faults)
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"a_unseen +FAIL .* unseen: 'Other' stays green")
        self.assertRegex(output, r"b_stale +FAIL .* does not apply")
        self.assertRegex(output, r"c_broken +FAIL .* does not compile")
        self.assertRegex(output, r"d_good +red ")
        self.assertIn("1 of 4 faults", output)

    def test_tests_that_are_red_already_or_missing_are_refused(self) -> None:
        status, output, _ = run(
            {"one": patch("Router", "wrong", old="odd")}, **{"value.txt": "compiles\nodd\n"}
        )
        self.assertEqual(status, 1)
        self.assertIn("Router.Weights fails without any fault", output)
        status, output, _ = run({"one": patch("Nowhere", "wrong")})
        self.assertEqual(status, 1)
        self.assertIn("'Nowhere'", output)

    def test_a_patch_must_name_its_tests(self) -> None:
        status, output, _ = run({"one": patch("", "wrong")})
        self.assertEqual(status, 1)
        self.assertIn("one.patch: its first lines lack", output)


if __name__ == "__main__":
    unittest.main()

"""Tests of tools/compare_held_out: the model is a distribution, and the figures are what they say."""

import importlib.machinery
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType

SCRIPT = Path(__file__).with_name("compare_held_out")


def load() -> ModuleType:
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("compare_held_out", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


compare = load()


def run(text: bytes, fraction: str) -> dict[str, float]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        command = [SCRIPT, file.name, fraction, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


class CompareHeldOut(unittest.TestCase):
    def test_probabilities_of_all_bytes_add_up_to_one(self) -> None:
        model = compare.ByteModel(b"the cat sat on the mat; the dog did not")
        for context in (b"the", b"xhe", b"xye", b"xyz"):
            total = sum(model.probability(context + bytes([c])) for c in range(256))
            self.assertAlmostEqual(total, 1.0, places=12)

    def test_learning_from_scratch_or_byte_by_byte_gives_the_same_counts(self) -> None:
        text = random.Random(1).choices(b"abcd", k=500)
        whole = compare.ByteModel(bytes(text))
        grown = compare.ByteModel(b"")
        for i in range(3, len(text)):
            grown.learn(bytes(text[i - 3 : i + 1]))
        self.assertEqual(whole.counts, grown.counts)
        self.assertEqual(whole.distinct, grown.distinct)

    def test_noise_costs_eight_bits_or_more_and_repetition_nearly_none(self) -> None:
        noise = run(random.Random(2).randbytes(60000), "0.1")
        self.assertEqual(noise["train_bytes"] + noise["held_out_bytes"], 60000)
        self.assertAlmostEqual(noise["xz_bits_per_byte"], 8.0, delta=0.1)
        # Witten and Bell believe half of what they saw once, which noise punishes.
        self.assertTrue(8.0 < noise["order3_bits_per_byte"] < 9.0)
        same = run(b"abcdefgh" * 5000, "0.1")
        self.assertLess(same["xz_bits_per_byte"], 0.1)
        self.assertLess(same["order3_bits_per_byte"], 0.1)

    def test_too_few_bytes_are_refused(self) -> None:
        with self.assertRaises(subprocess.CalledProcessError):
            run(b"abc", "0.05")


if __name__ == "__main__":
    unittest.main()

"""Tests of tools/check_layers: small trees with one fault each, and their clean twins."""

import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("check_layers")


def check(files: dict[str, str]) -> tuple[int, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([SCRIPT, "--root", folder], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()


HEADERS = {
    "src/base/error.h": "#pragma once\n",
    "src/device/stream.h": '#pragma once\n#include "base/error.h"\n',
    "src/kernels/ops/norm.h": '#pragma once\n#include "device/stream.h"\n',
    "src/kernels/ops/norm_cost.h": '#pragma once\n#include "base/error.h"\n',
    "src/comm/communicator.h": '#include "device/stream.h"\nvoid abort(int why);\n',
    "src/memory/saved.h": "#pragma once\n",
    "src/parallel/mesh.h": '#include "comm/communicator.h"\n',
    "src/model/config.h": "#pragma once\n",
    "src/model/layer.h": '#include "memory/saved.h"\n#include "parallel/mesh.h"\n',
    "src/train/step.h": '#include "model/layer.h"\n',
    "src/plan/plan.h": '#include "kernels/ops/norm_cost.h"\n#include "model/config.h"\n',
    "app/main.cc": '#include <CLI/CLI.hpp>\n#include "plan/plan.h"\n#include "train/step.h"\n',
}


class CheckLayers(unittest.TestCase):
    def refused(self, path: str, text: str, *expected: str) -> None:
        """The text in that place is refused with lines that contain what is expected, in order."""
        status, lines = check(HEADERS | {path: text})
        self.assertEqual(status, 1, lines)
        self.assertEqual(len(lines), len(expected), lines)
        for line, part in zip(lines, expected):
            self.assertIn(part, line)

    def accepted(self, path: str, text: str) -> None:
        status, lines = check(HEADERS | {path: text})
        self.assertEqual(status, 0, lines)

    def test_a_tree_that_follows_the_picture_passes(self) -> None:
        self.assertEqual(check(HEADERS)[0], 0)

    def test_no_source_at_all_is_an_error(self) -> None:
        self.assertEqual(check({"README.md": ""})[0], 1)

    def test_an_include_may_not_point_up(self) -> None:
        where = "src/base/error.cc"
        self.refused(where, '\n#include "device/stream.h"\n', f"{where}:2: base/ may not include")
        self.refused(where, "#include <device/stream.h>\n", f"{where}:1: base/ may not include")
        self.refused(where, '#include "../device/stream.h"\n', f"{where}:1: base/ may not include")
        self.refused("src/device/a_test.cc", '#include "train/step.h"\n', "device/ may not include")

    def test_siblings_never_include_each_other(self) -> None:
        self.refused("src/kernels/a.cc", '#include "comm/communicator.h"\n', "kernels/ may not")
        self.refused("src/comm/a.cc", '#include "memory/saved.h"\n', "comm/ may not")
        self.refused("src/memory/a.cc", '#include "kernels/ops/norm.h"\n', "memory/ may not")
        self.refused("src/train/a.cc", '#include "plan/plan.h"\n', "train/ may not")
        self.refused("src/plan/a.cc", '#include "train/step.h"\n', "plan/ may not")

    def test_plan_reads_cost_and_configuration_headers_only(self) -> None:
        where = "src/plan/a.cc"
        self.refused(where, '#include "model/layer.h"\n', "only configuration headers")
        self.refused(where, '#include "kernels/ops/norm.h"\n', "only ops/*_cost.h")
        self.refused(where, '#include "device/stream.h"\n', "plan/ may not include")
        way = "src/parallel/mesh.h -> src/comm/communicator.h -> src/device/stream.h"
        self.refused(where, '#include "parallel/mesh.h"\n', way)

    def test_a_cost_header_needs_no_device(self) -> None:
        where = "src/kernels/ops/gemm_cost.h"
        self.refused(where, '#include "device/stream.h"\n', "device code is reached")
        self.refused(where, '#include "kernels/ops/norm.h"\n', "device code is reached")

    def test_an_unknown_layer_or_file_is_refused(self) -> None:
        self.refused("src/util/a.h", "", "util/ is not in the layer picture")
        self.refused("src/base/a.h", '#include "base/nowhere.h"\n', "is no file of this tree")

    def test_a_library_stays_in_its_one_file(self) -> None:
        self.refused("src/train/a.cc", "#include <toml++/toml.h>\n", "only in src/base/toml.cc")
        self.refused("src/base/json.cc", "#include <spdlog/spdlog.h>\n", "only in src/base/log.cc")
        self.refused("app/train.cc", "#include <CLI/CLI.hpp>\n", "that is app/main.cc")
        self.accepted("src/base/toml.cc", "#include <toml++/toml.h>\n")

    def test_nothing_ends_the_process_below_app(self) -> None:
        where = "src/train/a.cc"
        for call in ("exit(1);", "std::abort();", "::_exit(2);", "if (x) abort();", "return exit(1);"):
            self.refused(where, f"void f() {{\n  {call}\n}}\n", f"{where}:2: ")
        for fine in ("comm.abort(1);", "c->abort(1);", "on_exit(f);", "// exit(1)", 'say("exit(1)");'):
            self.accepted(where, f"void f() {{\n  {fine}\n}}\n")
        self.accepted("src/comm/a.cc", "void Inproc::abort(int why) {}\n")
        self.accepted("app/doctor.cc", "void f() { std::exit(2); }\n")

    def test_mutable_globals_are_refused(self) -> None:
        where = "src/train/a.cc"
        for variable in (
            "int counter = 0;",
            "std::atomic<int> counter{0};",
            "thread_local std::vector<int> scratch;",
            "static std::map<std::string, int> cache;",
            "void f() {\n  static int calls = 0;\n}",
        ):
            self.refused(where, variable + "\n", "a mutable global")
        for fine in (
            "constexpr int kMax = 4;",
            "const std::string kNames[] = {};",
            "static const int kOne = 1;",
            "class Step;",
            "using Row = std::vector<int>;",
            "int f(int x);",
            "struct A {\n  static A make(int x);\n  int count = 0;\n};",
            "void f() {\n  static const std::map<int, int> table = make(1);\n}",
        ):
            self.accepted(where, fine + "\n")

    def test_a_file_stops_at_800_lines(self) -> None:
        self.accepted("src/base/long.cc", "\n" * 800)
        self.refused("src/base/long.cc", "\n" * 801, "long.cc:801: 801 lines")


if __name__ == "__main__":
    unittest.main()

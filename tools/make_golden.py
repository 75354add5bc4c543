#!/usr/bin/env python3
"""Make the golden files of tests/golden: tiny models, their logits, losses and gradients.

    python3 -m venv venv && venv/bin/pip install -r tools/golden_requirements.txt
    venv/bin/python tools/make_golden.py --out tests/golden [--case NAME]

Everything is seeded, fp32, eager and single-threaded; a second run with the same versions
on the same kind of CPU writes the same bytes. tests/golden/README.md says what every key means.
"""

import argparse
import pathlib

from golden import adamw, balance, basic, common, mtp

CASES = {
    "ds_base": basic.ds_base,
    "ds_no_qlora": basic.ds_no_qlora,
    "ds_yarn": basic.ds_yarn,
    "ds_yarn2": basic.ds_yarn2,
    "ds_tied": basic.ds_tied,
    "ds_packed": basic.ds_packed,
    "qwen3_moe": basic.qwen3_moe,
    "qwen3_moe_dense": basic.qwen3_moe_dense,
    "mtp1": mtp.mtp1,
    "mtp2": mtp.mtp2,
    "balance": balance.balance,
    "adamw": adamw.adamw,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden"))
    parser.add_argument("--case", choices=sorted(CASES), action="append", help="only this case (may be repeated)")
    args = parser.parse_args()
    common.setup()
    for name in args.case or CASES:
        report = CASES[name](args.out / name)
        size = sum(f.stat().st_size for f in (args.out / name).iterdir())
        print(f"{name}: {report}, {size / 1024:.0f} KiB", flush=True)


if __name__ == "__main__":
    main()

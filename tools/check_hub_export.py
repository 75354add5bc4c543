#!/usr/bin/env python3
"""Loads a model folder with transformers and compares its logits with a file's.

FOLDER is a hub folder that Rondo wrote. FILE is a safetensors file with `input_ids` (I32 [batch, seq], every row
one document without padding) and `logits` (F32 [batch, seq, vocab]). Exits 1 if the greatest difference exceeds
1e-5 of the greatest logit, or if a tensor is missing, unexpected or of the wrong shape. Tensors of MTP layers,
which transformers does not load, are counted and allowed."""

EXAMPLE = """example:
  venv/bin/pip install -r tools/golden_requirements.txt
  venv/bin/python tools/check_hub_export.py tests/golden/ds_base --logits tests/golden/ds_base/golden.safetensors"""

import argparse
import json
import pathlib
import re
import sys

TOLERANCE = 1e-5
LAYER = re.compile(r"model\.layers\.(\d+)\.")


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--logits", type=pathlib.Path, metavar="FILE", required=True)
    args = parser.parse_args()
    for path in (args.folder / "config.json", args.logits):
        if not path.is_file():
            parser.error(f"there is no {path}")
    return args


def tensor_names(folder):
    """What the folder's safetensors files hold, whether or not transformers says anything about it."""
    from safetensors import safe_open

    names = set()
    for path in sorted(folder.glob("*.safetensors")):
        # A golden file beside the weights is no part of the model.
        if path.name.startswith("model"):
            with safe_open(path, "pt") as f:
                names.update(f.keys())
    return names


def main():
    args = parse()
    # After the arguments, so that --help needs no PyTorch.
    import torch
    import transformers
    from safetensors.torch import load_file

    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_warning()
    transformers.utils.logging.disable_progress_bar()
    given = load_file(args.logits)
    for key, dims in (("input_ids", 2), ("logits", 3)):
        if key not in given or given[key].ndim != dims:
            sys.exit(f"check_hub_export: {args.logits} has no {key} of {dims} dimensions")

    try:
        model, info = transformers.AutoModelForCausalLM.from_pretrained(
            args.folder,
            dtype=torch.float32,
            attn_implementation="eager",
            experts_implementation="eager",
            # A wrong shape is reported with the rest instead of raised.
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (RuntimeError, ValueError, OSError) as error:
        # Experts that do not fuse end up here; transformers has printed which.
        print(f"transformers cannot load {args.folder}: {error}\nnot as exported")
        return 1
    layers = json.loads((args.folder / "config.json").read_text())["num_hidden_layers"]

    def is_mtp(name):
        match = LAYER.match(name)
        return match is not None and int(match[1]) >= layers

    if mtp := sorted(filter(is_mtp, tensor_names(args.folder))):
        print(f"MTP, not loaded: {len(mtp)} tensors, {mtp[0]} to {mtp[-1]}")
    wrong = [f"missing: {n}" for n in sorted(info["missing_keys"])]
    wrong += [f"unexpected: {n}" for n in sorted(info["unexpected_keys"]) if not is_mtp(n)]
    wrong += [f"mismatched: {m}" for m in sorted(map(str, info["mismatched_keys"]))]
    wrong += [f"error: {m}" for m in info.get("error_msgs") or []]

    with torch.no_grad():
        logits = model.eval()(input_ids=given["input_ids"].long(), use_cache=False).logits
    expected = given["logits"].float()
    if logits.shape != expected.shape:
        wrong.append(f"logits: {list(logits.shape)} here, {list(expected.shape)} in {args.logits}")
    else:
        error = float((logits - expected).abs().max() / expected.abs().max())
        print(f"greatest difference / greatest logit: {error:.3g}")
        if not error <= TOLERANCE:  # also when it is not a number
            wrong.append(f"logits: {error:.3g} is more than {TOLERANCE:g}")
    for line in wrong:
        print(line)
    print("not as exported" if wrong else "as exported")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Ten steps of AdamW: losses, gradient norms, learning rates and the weights that come out."""

import math

import torch

from . import common
from .basic import build
from .configs import VOCAB, deepseek

STEPS, WARM_UP, PEAK, FLOOR = 10, 3, 3e-3, 0.1
BETAS, EPSILON, DECAY, MAX_NORM = (0.9, 0.95), 1e-8, 0.1, 1.0
ROWS, SEQ = [[12], [12]], 12


def learning_rate(step):
    """Of step 1..STEPS: a linear warm-up, then a cosine down to FLOOR of the peak at the last step."""
    if step <= WARM_UP:
        return PEAK * step / WARM_UP
    done = (step - WARM_UP) / (STEPS - WARM_UP)
    return PEAK * (FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * done)))


def train(model, seed, routers):
    """The golden keys of all steps, or None as soon as a routing decision is too close."""
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    other = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": other, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=BETAS, eps=EPSILON, foreach=False)
    gen = torch.Generator().manual_seed(3000 + seed)
    golden = {}
    for s in range(STEPS):
        batch = common.make_batch(gen, ROWS, SEQ, VOCAB)
        _, loss = common.run_documents(model, batch)
        if routers.smallest_gap() < common.GAP or routers.smallest_score() <= 0:
            return None
        routers.calls.clear()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM, foreach=False)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(s + 1)
        optimizer.step()
        golden |= {f"input_ids.{s}": batch["input_ids"], f"labels.{s}": batch["labels"]}
        golden |= {f"loss.{s}": common.scalar(loss), f"grad_norm.{s}": common.scalar(norm)}
        golden[f"lr.{s}"] = common.scalar(learning_rate(s + 1))
    return golden


def adamw(out):
    config = deepseek(num_hidden_layers=2)

    def attempt(seed):
        model, batch = build(config, seed, ROWS, SEQ)
        before = common.hub_weights(model)
        logits, _ = common.run_documents(model, batch)
        golden = train(model, seed, common.Routers(model))
        return golden and (seed, model, batch, before, logits, golden)

    seed, model, batch, before, logits, golden = common.first_seed(attempt, tries=2000)
    after = common.hub_weights(model)
    golden |= {"doc": batch["doc"], "pos": batch["pos"]}  # the same in every step
    golden |= {f"after.{n}": t for n, t in after.items() if not n.endswith("e_score_correction_bias")}
    common.save_case(out, config, before, golden)
    fresh, _ = build(config, seed, ROWS, SEQ)
    error = common.verify_case(out, fresh, batch, logits)
    norms = ", ".join(f"{float(golden[f'grad_norm.{s}']):.2f}" for s in range(STEPS))
    losses = f"{float(golden['loss.0']):.4f} to {float(golden['loss.9']):.4f}"
    return f"seed {seed}, losses {losses}, norms {norms}, reload {error:.1e}"

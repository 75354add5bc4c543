"""The router's own losses: DeepSeek-V3's sequence balance loss and the z-loss."""

import torch

from . import common
from .basic import build
from .configs import deepseek

ALPHA, Z = 0.5, 0.1
ROWS, SEQ = [[12, 6], [9, 11]], 20


def router_losses(routers, tokens):
    """Both losses, weighted and summed over layers. One recorded call is one document in one layer."""
    balance = z = 0.0
    for router, logits, chosen in routers.calls:
        length, experts = logits.shape
        count = torch.bincount(chosen.flatten(), minlength=experts)
        f = experts * count / (router.top_k * length)
        scores = torch.sigmoid(logits)
        p = (scores / scores.sum(-1, keepdim=True)).mean(0)
        balance = balance + length * (f * p).sum()
        z = z + torch.logsumexp(logits, -1).square().sum()
    return ALPHA * balance / tokens, Z * z / tokens


def balance(out):
    config = deepseek()

    def attempt(seed):
        model, batch = build(config, seed, ROWS, SEQ)
        routers = common.Routers(model)
        logits, loss = common.run_documents(model, batch)
        if routers.smallest_gap() < common.GAP or routers.smallest_score() <= 0:
            return None
        return seed, model, batch, routers, logits, loss

    seed, model, batch, routers, logits, loss = common.first_seed(attempt)
    balance_loss, z_loss = router_losses(routers, int((batch["doc"] >= 0).sum()))
    total = loss + balance_loss + z_loss
    total.backward()
    scalars = {
        "loss": loss, "balance_loss": balance_loss, "z_loss": z_loss, "total_loss": total,
        "balance_alpha": ALPHA, "z_coefficient": Z,
    }  # fmt: skip
    golden = {**batch, "logits": logits, **routers.counts(), **common.hub_grads(model)}
    golden |= {name: common.scalar(x) for name, x in scalars.items()}
    weights = common.hub_weights(model)
    common.check_keys(weights, golden)
    common.save_case(out, config, weights, golden)
    error = common.verify_case(out, model, batch, logits)
    values = ", ".join(f"{name} {float(golden[name]):.4f}" for name in list(scalars)[:4])
    return f"seed {seed}, {values}, reload {error:.1e}"

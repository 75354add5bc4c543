"""Multi-token prediction: DeepSeek-V3's modules around the transformers decoder layer."""

import torch
from torch import nn
from transformers.modeling_layers import MtpModel

from . import common
from .basic import build
from .configs import deepseek

WEIGHT = 0.3  # lambda
ROWS, SEQ = [[9, 1, 6, 3], [14, 2, 4]], 20


class Depth(nn.Module):
    """One depth, with the tensor names of the hub."""

    def __init__(self, model, layer):
        super().__init__()
        decoder = model.model
        norm = type(decoder.norm)
        size, eps = model.config.hidden_size, model.config.rms_norm_eps
        block = type(decoder.layers[-1])(model.config, layer)
        for name, child in block.named_children():
            self.add_module(name, child)
        self.enorm, self.hnorm = norm(size, eps), norm(size, eps)
        self.eh_proj = nn.Linear(2 * size, size, bias=False)
        self.shared_head = nn.Module()
        self.shared_head.norm = norm(size, eps)

    def forward(self, embedded, previous, rotary):
        """[1, n, hidden] twice; returns the normed state: the head's input and the next depth's."""
        n = embedded.shape[1]
        x = self.eh_proj(torch.cat([self.enorm(embedded), self.hnorm(previous)], dim=-1))
        mask = torch.full((n, n), float("-inf")).triu(1)[None, None]
        attended, _ = self.self_attn(self.input_layernorm(x), rotary, mask)
        x = x + attended
        x = x + self.mlp(self.post_attention_layernorm(x))
        return self.shared_head.norm(x)


class Mtp(nn.Module):
    """Depths 1..D as model.layers.{L + d - 1}."""

    def __init__(self, model, depth, gen):
        super().__init__()
        first = model.config.num_hidden_layers
        self.model = nn.Module()
        self.model.layers = nn.ModuleDict({str(first + d): Depth(model, first + d) for d in range(depth)})
        common.init_weights(self, gen)

    def depths(self):
        return list(self.model.layers.values())


def shifted(batch, depth):
    """Input ids and labels of a depth, -100 where there is none."""
    ids = torch.full_like(batch["input_ids"], common.IGNORE)
    labels = ids.clone()
    for row, at in common.documents(batch):
        tokens = batch["input_ids"][row, at]
        n = len(tokens)
        ids[row, at][: max(n - depth, 0)] = tokens[depth:]
        labels[row, at][: max(n - depth - 1, 0)] = tokens[depth + 1 :]
    return ids, labels


def run(model, mtp, batch):
    """Every document alone. Returns logits and losses, the main model's first, then each depth's."""
    depths = mtp.depths()
    labels = [batch["labels"]] + [shifted(batch, d)[1] for d in range(1, len(depths) + 1)]
    logits = [torch.zeros(*batch["input_ids"].shape, model.config.vocab_size) for _ in labels]
    sums = [0.0] * len(labels)

    def head(d, row, places, state):
        out = model.lm_head(state)[0]
        logits[d][row, places] = out.detach()
        sums[d] = sums[d] + common.token_loss_sum(out, labels[d][row, places])

    for row, at in common.documents(batch):
        ids = batch["input_ids"][row : row + 1, at]
        state = model.model(input_ids=ids, use_cache=False).last_hidden_state
        head(0, row, at, state)
        for d, module in enumerate(depths, 1):
            n = ids.shape[1] - d  # positions whose token i + d is in the document
            if n < 1:
                break
            rotary = model.model.rotary_emb(state, torch.arange(n)[None])
            state = module(model.model.embed_tokens(ids[:, d:]), state[:, :n], rotary)
            head(d, row, slice(at.start, at.start + n), state)
    return logits, [s / common.count(l) for s, l in zip(sums, labels)]


@torch.no_grad()
def transformers_agrees(model, mtp, batch, logits):
    """transformers' own MtpModel with the same weights, fed as its generate() feeds it."""
    depths = mtp.depths()
    theirs = MtpModel(model, len(depths)).eval()
    theirs.config._attn_implementation = theirs.config._experts_implementation = "eager"
    for ours, layer in zip(depths, theirs.layers):
        own = ("enorm.", "hnorm.", "eh_proj.", "shared_head.")
        renamed = {n if n.startswith(own) else "mtp_block." + n: t for n, t in ours.state_dict().items()}
        renamed["post_norm.weight"] = renamed.pop("shared_head.norm.weight")
        layer.load_state_dict(renamed)
    for row, at in common.documents(batch):
        ids = batch["input_ids"][row : row + 1, at]
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
        for d in range(1, len(depths) + 1):
            n = ids.shape[1] - d
            if n < 1:
                break
            hidden = theirs.forward_layer(d - 1, hidden[:, :n], torch.arange(d, d + n)[None], None, ids[:, d:])
            expected = logits[d][row, at][:n]
            assert common.rel_error(theirs.shared_head(hidden)[0], expected) < 5e-6


def mtp_case(out, depth, copies):
    config = deepseek(num_hidden_layers=2, num_nextn_predict_layers=depth)

    def attempt(seed):
        model, batch = build(config, seed, ROWS, SEQ)
        mtp = Mtp(model, depth, torch.Generator().manual_seed(2000 + seed)).eval()
        routers = [common.Routers(model), common.Routers(mtp)]
        logits, losses = run(model, mtp, batch)
        if min(r.smallest_gap() for r in routers) < common.GAP or min(r.smallest_score() for r in routers) <= 0:
            return None
        return seed, model, mtp, batch, routers, logits, losses

    seed, model, mtp, batch, routers, logits, losses = common.first_seed(attempt)
    total = losses[0] + WEIGHT / depth * sum(losses[1:])
    total.backward()
    golden = {**batch, "logits": logits[0], "loss": common.scalar(losses[0])}
    for d in range(1, depth + 1):
        golden[f"mtp_input_ids.{d}"], golden[f"mtp_labels.{d}"] = shifted(batch, d)
        golden[f"mtp_logits.{d}"] = logits[d]
        golden[f"mtp_loss.{d}"] = common.scalar(losses[d])
    golden |= {"mtp_loss_weight": common.scalar(WEIGHT), "total_loss": common.scalar(total)}
    for r in routers:
        golden |= r.counts()
    golden |= common.hub_grads(model) | common.hub_grads(mtp)
    weights = common.hub_weights(model) | common.hub_weights(mtp)
    common.check_keys(weights, golden)
    transformers_agrees(model, mtp, batch, logits)
    extra = [f"model.layers.{n}." for n in mtp.model.layers]
    if copies:
        for stem in extra:
            weights[stem + "embed_tokens.weight"] = weights["model.embed_tokens.weight"].clone()
            weights[stem + "shared_head.head.weight"] = weights["lm_head.weight"].clone()
    common.save_case(out, config, weights, golden)
    error = common.verify_case(out, model, batch, logits[0], extra)
    losses = ", ".join(f"{float(l.detach()):.4f}" for l in losses)
    return f"seed {seed}, losses {losses}, reload {error:.1e}"


def mtp1(out):
    return mtp_case(out, 1, copies=True)


def mtp2(out):
    return mtp_case(out, 2, copies=False)

"""Building blocks shared by all cases: models, batches, losses, hub names, files."""

import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

IGNORE = -100
# The plain loops: they take any size (grouped matmuls want rows of whole 16 bytes) and round the same everywhere.
EAGER = {"dtype": torch.float32, "attn_implementation": "eager", "experts_implementation": "eager"}
GAP = 1e-4  # smallest allowed distance between a chosen and a rejected router score


def setup():
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


# ---------------------------------------------------------------- models


def new_model(hub_config, seed):
    """A model with random weights: wide enough that logits spread and routing varies."""
    config = AutoConfig.for_model(**json.loads(json.dumps(hub_config)))
    model = AutoModelForCausalLM.from_config(config, **EAGER)
    init_weights(model, torch.Generator().manual_seed(seed))
    return model.eval()


@torch.no_grad()
def init_weights(module, gen):
    def normal(tensor, mean, std):
        tensor.copy_(mean + std * torch.randn(tensor.shape, generator=gen))

    for name, p in module.named_parameters():
        if p.ndim == 1:
            normal(p, 1.0, 0.1)  # norms
        elif "embed_tokens" in name:
            # A tied head would make logits of std 3 from embeddings that wide.
            normal(p, 0.0, 0.2 if module.config.tie_word_embeddings else 0.5)
        elif name.endswith("gate.weight"):
            normal(p, 0.0, 0.25)
        else:
            normal(p, 0.0, 0.15)
    for name, b in module.named_buffers():
        if name.endswith("e_score_correction_bias"):
            b.copy_(0.05 + 0.2 * torch.rand(b.shape, generator=gen))


def hub_names(named):
    """(name, tensor) pairs as a hub checkpoint has them: fused expert tensors are split into experts."""
    for name, t in named:
        if name.endswith(".experts.gate_up_proj"):
            stem = name.removesuffix("gate_up_proj")
            for e, expert in enumerate(t):
                gate, up = expert.chunk(2, dim=0)
                yield f"{stem}{e}.gate_proj.weight", gate
                yield f"{stem}{e}.up_proj.weight", up
        elif name.endswith(".experts.down_proj"):
            stem = name.removesuffix("down_proj")
            for e, expert in enumerate(t):
                yield f"{stem}{e}.down_proj.weight", expert
        else:
            yield name, t


def hub_weights(model):
    """Parameters and persistent buffers of a model under their hub names (a tied head is left out)."""
    buffers = [(n, b) for n, b in model.named_buffers() if n.endswith("e_score_correction_bias")]
    named = list(model.named_parameters()) + buffers
    return {n: t.detach().clone().contiguous() for n, t in hub_names(named)}


def hub_grads(module, prefix="grad."):
    named = [(n, torch.zeros_like(p) if p.grad is None else p.grad) for n, p in module.named_parameters()]
    return {prefix + n: g.detach().clone().contiguous() for n, g in hub_names(named)}


# ---------------------------------------------------------------- batches


def make_batch(gen, rows, seq, vocab, ignored=3):
    """A batch from rows of document lengths; what a row leaves free is padding.

    Labels are already shifted. The last token of a document and `ignored` random ones have none."""
    ids = torch.zeros(len(rows), seq, dtype=torch.long)
    labels = torch.full_like(ids, IGNORE)
    doc = torch.full_like(ids, -1)
    pos = torch.zeros_like(ids)
    number = 0
    for r, lengths in enumerate(rows):
        start = 0
        for n in lengths:
            tokens = torch.randint(1, vocab, (n,), generator=gen)
            ids[r, start : start + n] = tokens
            labels[r, start : start + n - 1] = tokens[1:]
            doc[r, start : start + n] = number
            pos[r, start : start + n] = torch.arange(n)
            start += n
            number += 1
        assert start <= seq
    valid = (labels != IGNORE).nonzero()
    for k in torch.randperm(len(valid), generator=gen)[:ignored]:
        labels[tuple(valid[k])] = IGNORE
    return {"input_ids": ids, "labels": labels, "doc": doc, "pos": pos}


def documents(batch):
    """(row, slice) of every document of a batch."""
    for row, numbers in enumerate(batch["doc"]):
        for d in numbers[numbers >= 0].unique().tolist():
            at = (numbers == d).nonzero().flatten()
            yield row, slice(int(at[0]), int(at[-1]) + 1)


def token_loss_sum(logits, labels):
    """Sum of the cross-entropies of the labelled positions, from plain logits."""
    keep = labels != IGNORE
    if not keep.any():
        return logits.sum() * 0.0
    logp = torch.log_softmax(logits[keep], dim=-1)
    return -logp.gather(1, labels[keep].unsqueeze(1)).sum()


def count(labels):
    return int((labels != IGNORE).sum())


def run_documents(model, batch):
    """Every document alone through the model, positions from 0. Returns logits (padding zero), mean loss."""
    ids, labels = batch["input_ids"], batch["labels"]
    logits = torch.zeros(*ids.shape, model.config.vocab_size)
    total = 0.0
    for row, at in documents(batch):
        out = model(input_ids=ids[row : row + 1, at], use_cache=False).logits[0]
        logits[row, at] = out.detach()
        total = total + token_loss_sum(out, labels[row, at])
    return logits, total / count(labels)


def run_packed(model, batch):
    """All rows in one call: a token sees its own document's tokens up to its own position."""
    ids, labels, doc, pos = (batch[k] for k in ("input_ids", "labels", "doc", "pos"))
    visible = (doc[:, :, None] == doc[:, None, :]) & (pos[:, None, :] <= pos[:, :, None])
    mask = torch.zeros(visible.shape).masked_fill(~visible, float("-inf")).unsqueeze(1)
    logits = model(input_ids=ids, attention_mask=mask, position_ids=pos, use_cache=False).logits
    loss = token_loss_sum(logits, labels) / count(labels)
    return logits.detach() * (doc >= 0).unsqueeze(-1), loss


# ---------------------------------------------------------------- routers


class Routers:
    """Records every router call of a module: logits (with gradient) and chosen experts, in call order."""

    def __init__(self, module):
        self.calls = []
        self.layer_of = {}
        for name, m in module.named_modules():
            if type(m).__name__.endswith(("TopkRouter", "TopKRouter")):
                self.layer_of[m] = int(name.split("layers.")[1].split(".")[0])
                m.register_forward_hook(lambda mod, _, out: self.calls.append((mod, out[0], out[2])))

    def counts(self):
        """How many tokens each expert got, by layer number."""
        counts = {}
        for router, _, chosen in self.calls:
            n = torch.bincount(chosen.flatten(), minlength=router.num_experts)
            layer = self.layer_of[router]
            counts[layer] = counts.get(layer, 0) + n
        return {f"expert_counts.{layer}": n for layer, n in sorted(counts.items())}

    def smallest_gap(self):
        """Smallest distance of any top-k or group decision; the recorded choice is checked on the way."""
        return min((self._gap(*call) for call in self.calls), default=float("inf"))

    def smallest_score(self):
        """Smallest biased score (positive: then masking groups by 0 and by -inf agree)."""
        return min(float((l.detach().sigmoid() + m.e_score_correction_bias).min()) for m, l, _ in self.calls)

    @staticmethod
    @torch.no_grad()
    def _gap(router, logits, chosen):
        gap = float("inf")
        if not hasattr(router, "e_score_correction_bias"):
            scores = torch.softmax(logits, dim=-1)
        else:
            scores = torch.sigmoid(logits) + router.e_score_correction_bias
            groups = scores.view(len(scores), router.num_group, -1)
            group_scores = groups.topk(2, dim=-1)[0].sum(-1)
            if router.topk_group < router.num_group:
                ranked = group_scores.sort(-1, descending=True)
                gap = float((ranked[0][:, router.topk_group - 1] - ranked[0][:, router.topk_group]).min())
                drop = torch.ones_like(group_scores, dtype=torch.bool)
                drop.scatter_(1, ranked[1][:, : router.topk_group], False)
                scores = groups.masked_fill(drop.unsqueeze(-1), float("-inf")).reshape(scores.shape)
        ranked, index = scores.sort(-1, descending=True)
        assert (index[:, : router.top_k].sort(-1)[0] == chosen.sort(-1)[0]).all()
        return min(gap, float((ranked[:, router.top_k - 1] - ranked[:, router.top_k]).min()))


def first_seed(attempt, start=1, tries=200):
    """The result of attempt(seed) for the first seed whose routing decisions are all clear."""
    for seed in range(start, start + tries):
        result = attempt(seed)
        if result is not None:
            return result
    raise RuntimeError("no seed gives clear routing decisions")


# ---------------------------------------------------------------- files


def scalar(x):
    return torch.as_tensor(x).detach().reshape(1).float()


def save_case(out, hub_config, weights, golden):
    """Write one case's folder. Integers become I32, everything else is F32."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(hub_config, indent=2) + "\n")
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    tensors = {}
    for name, t in golden.items():
        t = t.detach()
        tensors[name] = (t.to(torch.int32) if not t.is_floating_point() else t.float()).contiguous()
        assert not tensors[name].is_floating_point() or torch.isfinite(tensors[name]).all(), name
    save_file(tensors, out / "golden.safetensors")
    for f in out.iterdir():
        f.chmod(0o644)


def check_keys(weights, golden):
    """Every trained tensor of the file has a gradient of its shape; nothing else has."""
    trained = {n: t.shape for n, t in weights.items() if not n.endswith("e_score_correction_bias")}
    assert trained == {n.removeprefix("grad."): t.shape for n, t in golden.items() if n.startswith("grad.")}


def rel_error(a, b):
    return float((a - b).abs().max() / b.abs().max())


def verify_case(out, model, batch, logits, extra_layers=()):
    """The folder is a real hub folder: save_pretrained agrees on names and bits, from_pretrained on logits."""
    written = load_file(out / "model.safetensors")
    main = {n: t for n, t in written.items() if not n.startswith(tuple(extra_layers))} if extra_layers else written
    with tempfile.TemporaryDirectory() as tmp:
        model.save_pretrained(tmp)
        saved = {}
        for f in pathlib.Path(tmp).glob("*.safetensors"):
            saved.update(load_file(f))
    assert saved.keys() == main.keys(), sorted(saved.keys() ^ main.keys())[:8]
    assert all(torch.equal(saved[n], main[n]) for n in saved)

    loaded, info = AutoModelForCausalLM.from_pretrained(
        out, output_loading_info=True, **EAGER
    )
    unexpected = [k for k in info["unexpected_keys"] if not (extra_layers and k.startswith(tuple(extra_layers)))]
    assert not unexpected and not info["missing_keys"] and not info["mismatched_keys"], info
    with torch.no_grad():
        again, _ = run_documents(loaded.eval(), batch)
    error = rel_error(again, logits)
    assert error < 2e-6, error
    return error

"""Plain forward and backward cases: one loss, all gradients."""

import torch

from . import common
from .configs import ABSENT, VOCAB, deepseek, qwen3

SEQ = 20
ONE_DOCUMENT_A_ROW = [[SEQ], [SEQ]]


def build(hub_config, seed, rows=ONE_DOCUMENT_A_ROW, seq=SEQ, tweak=None):
    model = common.new_model(hub_config, seed)
    if tweak:
        tweak(model)
    batch = common.make_batch(torch.Generator().manual_seed(1000 + seed), rows, seq, VOCAB)
    return model, batch


def forward_case(out, hub_config, rows=ONE_DOCUMENT_A_ROW, seq=SEQ, tweak=None, positive=False, check=None):
    def attempt(seed):
        model, batch = build(hub_config, seed, rows, seq, tweak)
        routers = common.Routers(model)
        logits, loss = common.run_documents(model, batch)
        if routers.smallest_gap() < common.GAP or (positive and routers.smallest_score() <= 0):
            return None
        counts = routers.counts()
        assert all((n > 0).sum() >= 6 for n in counts.values()), "routing is not varied"
        return seed, model, batch, counts, logits, loss

    seed, model, batch, counts, logits, loss = common.first_seed(attempt)
    loss.backward()
    golden = {**batch, "logits": logits, "loss": common.scalar(loss), **counts, **common.hub_grads(model)}
    if check:
        check(model, batch, golden)
    weights = common.hub_weights(model)
    common.check_keys(weights, golden)
    common.save_case(out, hub_config, weights, golden)
    error = common.verify_case(out, model, batch, logits)
    return f"seed {seed}, loss {float(loss.detach()):.4f}, logit std {float(logits.std()):.2f}, reload {error:.1e}"


def whole_rows_agree(model, batch, golden):
    """Rows that are one document each: the same batch in one call."""
    with torch.no_grad():
        together = model(input_ids=batch["input_ids"], use_cache=False).logits
    assert common.rel_error(together, golden["logits"]) < 2e-6


def ds_base(out):
    return forward_case(out, deepseek(), positive=True, check=whole_rows_agree)


def ds_no_qlora(out):
    # The shape of Moonlight. Its large epsilon shows that the latent norms keep 1e-6 (see the README).
    config = deepseek(
        q_lora_rank=None, rope_interleave=False, norm_topk_prob=False, n_group=1, topk_group=1,
        n_shared_experts=2, num_hidden_layers=2, routed_scaling_factor=1.3, rms_norm_eps=1e-3,
    )  # fmt: skip
    return forward_case(out, config, check=whole_rows_agree)


def ds_yarn(out):
    # The numbers of DeepSeek-V3, under the name that hub folders had before transformers 5.
    scaling = {
        "type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
    }  # fmt: skip
    config = deepseek(rope_scaling=scaling, max_position_embeddings=163840, num_hidden_layers=2)

    def check(model, batch, golden):
        whole_rows_agree(model, batch, golden)
        attention = model.model.layers[0].self_attn
        assert abs(attention.scaling * attention.qk_head_dim**0.5 - 1.8738539) < 1e-6
        assert model.model.rotary_emb.attention_scaling == 1.0

    return forward_case(out, config, positive=True, check=check)


def ds_yarn2(out):
    # A short original context and flat frequencies: the ramp covers all four, and positions leave it.
    rope = {
        "rope_type": "yarn", "rope_theta": 50.0, "factor": 40.0, "beta_fast": 4.0, "beta_slow": 0.25,
        "mscale": 1.2, "mscale_all_dim": 0.8, "original_max_position_embeddings": 16,
    }  # fmt: skip
    config = deepseek(rope_parameters=rope, rope_theta=ABSENT, max_position_embeddings=640, num_hidden_layers=2)

    def check(model, batch, golden):
        whole_rows_agree(model, batch, golden)
        rotary = model.model.rotary_emb
        plain = 50.0 ** (-torch.arange(0, 8, 2) / 8)
        share = (rotary.inv_freq / plain - 1 / 40) / (1 - 1 / 40)
        assert torch.allclose(share, torch.tensor([1, 2 / 3, 1 / 3, 0]), atol=1e-6)
        assert rotary.attention_scaling > 1.01

    return forward_case(out, config, positive=True, check=check)


DEAD_EXPERT = 5


def ds_tied(out):
    def kill(model):
        for m in model.modules():
            if hasattr(m, "e_score_correction_bias"):
                m.e_score_correction_bias[DEAD_EXPERT] = -0.95

    def check(model, batch, golden):
        whole_rows_agree(model, batch, golden)
        assert "grad.lm_head.weight" not in golden
        stem = f"grad.model.layers.1.mlp.experts.{DEAD_EXPERT}."
        assert all((t == 0).all() for n, t in golden.items() if n.startswith(stem))
        assert golden["expert_counts.1"][DEAD_EXPERT] == 0

    config = deepseek(tie_word_embeddings=True, n_group=1, topk_group=1, num_hidden_layers=2)
    return forward_case(out, config, tweak=kill, check=check)


def ds_packed(out):
    rows = [[7, 1, 9, 3], [5, 12, 4]]

    def check(model, batch, golden):
        # One call with a block-diagonal mask gives the same logits and gradients.
        logits, loss = common.run_packed(model, batch)
        assert common.rel_error(logits, golden["logits"]) < 2e-6
        model.zero_grad()
        loss.backward()
        for name, grad in common.hub_grads(model).items():
            error = (grad - golden[name]).norm()
            assert error <= 1e-5 * golden[name].norm() + 1e-7, (name, float(error))

    return forward_case(out, deepseek(num_hidden_layers=2), rows=rows, seq=22, positive=True, check=check)


def qwen3_moe(out):
    return forward_case(out, qwen3(), check=whole_rows_agree)


def qwen3_moe_dense(out):
    config = qwen3(mlp_only_layers=[1], num_hidden_layers=3, norm_topk_prob=False, tie_word_embeddings=True)

    def check(model, batch, golden):
        whole_rows_agree(model, batch, golden)
        assert "grad.model.layers.1.mlp.gate_proj.weight" in golden and "grad.lm_head.weight" not in golden

    return forward_case(out, config, check=check)

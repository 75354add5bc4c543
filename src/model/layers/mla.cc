// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).
#include "kernels/ops/rope.h"
#include "model/layers/attention_core.h"
#include "model/layers/sublayer.h"

namespace rondo {
namespace {

// Of the norms of the latents: fixed, whatever rms_norm_eps says, in DeepSeek's code and on the
// hub.
constexpr double kLatentEps = 1e-6;

class Mla : public Sublayer {
 public:
  Mla(const ModelConfig& config, const Weights& weights, const std::string& prefix, int64_t layer)
      : layer_(layer),
        heads_(config.num_attention_heads),
        nope_(config.qk_nope_head_dim),
        rope_(config.qk_rope_head_dim),
        value_(config.v_head_dim),
        q_rank_(config.q_lora_rank),
        kv_rank_(config.kv_lora_rank),
        kv_a_(weights, prefix + ".kv_a_proj_with_mqa.weight"),
        kv_norm_(weights, prefix + ".kv_a_layernorm.weight"),
        kv_b_(weights, prefix + ".kv_b_proj.weight"),
        o_(weights, prefix + ".o_proj.weight") {
    if (q_rank_ > 0) {
      q_a_ = Weight(weights, prefix + ".q_a_proj.weight");
      q_norm_ = Weight(weights, prefix + ".q_a_layernorm.weight");
      q_b_ = Weight(weights, prefix + ".q_b_proj.weight");
    } else {
      q_b_ = Weight(weights, prefix + ".q_proj.weight");
    }
  }

  void forward(const Pass& pass, const View& h, const View& y) override {
    Context& ctx = pass.ctx;
    const int64_t t = pass.tokens, qk = nope_ + rope_;
    Tensor q = pass.activation({t, heads_ * qk});
    Tensor q_a, q_normed, q_inv;
    if (q_rank_ > 0) {
      q_a = pass.activation({t, q_rank_});
      q_normed = pass.activation({t, q_rank_});
      q_inv = pass.activation({t});
      linear(ctx, h, q_a_.w, q_a);
      norm(pass, q_a, q_norm_, q_normed, q_inv, kLatentEps);
      linear(ctx, q_normed, q_b_.w, q);
    } else {
      linear(ctx, h, q_b_.w, q);
    }
    rope(pass, rotated(q), rotated(q), false);

    Tensor kv_a = pass.activation({t, kv_rank_ + rope_});
    Tensor latent = pass.activation({t, kv_rank_}), kv_inv = pass.activation({t});
    Tensor kv = pass.activation({t, heads_ * (nope_ + value_)});
    Tensor k = pass.activation({t, heads_ * qk});
    linear(ctx, h, kv_a_.w, kv_a);
    norm(pass, kv_a.view().slice(1, 0, kv_rank_), kv_norm_, latent, kv_inv, kLatentEps);
    linear(ctx, latent, kv_b_.w, kv);
    copy_rows(ctx, keys(kv), as_heads(k, heads_).slice(2, 0, nope_));
    rope(pass, shared_key(kv_a), rotated(k), false);

    Tensor o = pass.activation({t, heads_ * value_}), lse = pass.activation({t, heads_});
    attention_forward(pass, layer_, as_heads(q, heads_), as_heads(k, heads_), values(kv),
                      as_heads(o, heads_), lse);
    linear(ctx, o, o_.w, y);
    pass.look(layer_, "queries", q);
    pass.look(layer_, "keys and values", kv);
    pass.look(layer_, "attention", o);

    if (q_rank_ > 0) {
      pass.save(layer_, SavedClass::kLatent, "q_a", std::move(q_a));
      pass.save(layer_, SavedClass::kLatent, "q_normed", std::move(q_normed));
      pass.save(layer_, SavedClass::kNorm, "q_inv", std::move(q_inv));
    }
    pass.save(layer_, SavedClass::kLatent, "kv_a", std::move(kv_a));
    pass.save(layer_, SavedClass::kLatent, "latent", std::move(latent));
    pass.save(layer_, SavedClass::kNorm, "kv_inv", std::move(kv_inv));
    pass.save(layer_, SavedClass::kAttentionInput, "q", std::move(q));
    pass.save(layer_, SavedClass::kAttentionInput, "k", std::move(k));
    pass.save(layer_, SavedClass::kAttentionInput, "kv", std::move(kv));
    pass.save(layer_, SavedClass::kAttentionOutput, "o", std::move(o));
    pass.save(layer_, SavedClass::kAttentionOutput, "lse", std::move(lse));
  }

  void backward_input(const Pass& pass, const View&, const View& dy, const View& dh) override {
    Context& ctx = pass.ctx;
    const int64_t t = pass.tokens, qk = nope_ + rope_;
    const View kv = pass.fetch(layer_, "kv");
    const View kv_a = pass.fetch(layer_, "kv_a");
    Tensor d_o = pass.activation({t, heads_ * value_});
    Tensor dq = pass.activation({t, heads_ * qk}), dk = pass.activation({t, heads_ * qk});
    Tensor d_kv = pass.activation({t, heads_ * (nope_ + value_)});
    linear_backward_input(ctx, dy, o_.w, d_o);
    attention_backward(pass, layer_, as_heads(pass.fetch(layer_, "q"), heads_),
                       as_heads(pass.fetch(layer_, "k"), heads_), values(kv),
                       as_heads(pass.fetch(layer_, "o"), heads_), pass.fetch(layer_, "lse"),
                       as_heads(d_o, heads_), as_heads(dq, heads_), as_heads(dk, heads_),
                       values(d_kv));

    Tensor d_kv_a = pass.activation({t, kv_rank_ + rope_}),
           d_latent = pass.activation({t, kv_rank_});
    copy_rows(ctx, as_heads(dk, heads_).slice(2, 0, nope_), keys(d_kv));
    rope(pass, rotated(dk), shared_key(d_kv_a), true);
    linear_backward_input(ctx, d_kv, kv_b_.w, d_latent);
    norm_backward(pass, kv_a.slice(1, 0, kv_rank_), kv_norm_, pass.fetch(layer_, "kv_inv"),
                  d_latent, d_kv_a.view().slice(1, 0, kv_rank_));
    linear_backward_input(ctx, d_kv_a, kv_a_.w, dh);

    rope(pass, rotated(dq), rotated(dq), true);
    if (q_rank_ > 0) {
      Tensor d_normed = pass.activation({t, q_rank_}), d_q_a = pass.activation({t, q_rank_});
      linear_backward_input(ctx, dq, q_b_.w, d_normed);
      norm_backward(pass, pass.fetch(layer_, "q_a"), q_norm_, pass.fetch(layer_, "q_inv"), d_normed,
                    d_q_a);
      linear_backward_input(ctx, d_q_a, q_a_.w, dh, true);
      pass.save(layer_, SavedClass::kGradient, "d_q_a", std::move(d_q_a));
    } else {
      linear_backward_input(ctx, dq, q_b_.w, dh, true);
    }
    pass.save(layer_, SavedClass::kGradient, "d_q", std::move(dq));
    pass.save(layer_, SavedClass::kGradient, "d_kv", std::move(d_kv));
    pass.save(layer_, SavedClass::kGradient, "d_kv_a", std::move(d_kv_a));
  }

  void backward_weight(const Pass& pass, const View& h, const View& dy) override {
    Context& ctx = pass.ctx;
    const View dq = pass.fetch(layer_, "d_q");
    linear_backward_weight(ctx, dy, pass.fetch(layer_, "o"), o_.grad);
    linear_backward_weight(ctx, pass.fetch(layer_, "d_kv"), pass.fetch(layer_, "latent"),
                           kv_b_.grad);
    linear_backward_weight(ctx, pass.fetch(layer_, "d_kv_a"), h, kv_a_.grad);
    if (q_rank_ > 0) {
      linear_backward_weight(ctx, dq, pass.fetch(layer_, "q_normed"), q_b_.grad);
      linear_backward_weight(ctx, pass.fetch(layer_, "d_q_a"), h, q_a_.grad);
    } else {
      linear_backward_weight(ctx, dq, h, q_b_.grad);
    }
  }

 private:
  // The parts of [T, heads * ...] matrices, as [T, heads, .].
  View rotated(const View& qk) const { return as_heads(qk, heads_).slice(2, nope_, nope_ + rope_); }
  View keys(const View& kv) const { return as_heads(kv, heads_).slice(2, 0, nope_); }
  View values(const View& kv) const { return as_heads(kv, heads_).slice(2, nope_, nope_ + value_); }
  View shared_key(const View& kv_a) const {
    return as_heads(kv_a.slice(1, kv_rank_, kv_rank_ + rope_), 1);
  }
  void rope(const Pass& pass, const View& x, const View& y, bool inverse) const {
    launch(pass.ctx, RopeArgs{x, y, pass.cos, pass.sin, pass.config.rope_interleave, inverse});
  }

  const int64_t layer_, heads_, nope_, rope_, value_, q_rank_, kv_rank_;
  Weight q_a_, q_norm_, q_b_, kv_a_, kv_norm_, kv_b_, o_;
};

}  // namespace

std::unique_ptr<Sublayer> make_mla(const ModelConfig& config, const Weights& weights,
                                   const std::string& prefix, int64_t layer) {
  return std::make_unique<Mla>(config, weights, prefix, layer);
}

}  // namespace rondo

// Attention with grouped queries (Ainslie et al., 2023) and a norm on queries and keys (Qwen3).
#include "kernels/ops/rope.h"
#include "model/layers/attention_core.h"
#include "model/layers/sublayer.h"

namespace rondo {
namespace {

class Gqa : public Sublayer {
 public:
  Gqa(const ModelConfig& config, const Weights& weights, const std::string& prefix, int64_t layer)
      : layer_(layer),
        heads_(config.num_attention_heads),
        kv_heads_(config.num_key_value_heads),
        dim_(config.head_dim),
        q_(weights, prefix + ".q_proj.weight"),
        k_(weights, prefix + ".k_proj.weight"),
        v_(weights, prefix + ".v_proj.weight"),
        o_(weights, prefix + ".o_proj.weight"),
        q_norm_(weights, prefix + ".q_norm.weight"),
        k_norm_(weights, prefix + ".k_norm.weight") {}

  void forward(const Pass& pass, const View& h, const View& y) override {
    Context& ctx = pass.ctx;
    const int64_t t = pass.tokens;
    Tensor q = pass.activation({t, heads_ * dim_}), q_raw = pass.activation({t, heads_ * dim_});
    Tensor k = pass.activation({t, kv_heads_ * dim_}),
           k_raw = pass.activation({t, kv_heads_ * dim_});
    Tensor v = pass.activation({t, kv_heads_ * dim_});
    Tensor q_inv = pass.activation({t * heads_}), k_inv = pass.activation({t * kv_heads_});
    linear(ctx, h, q_.w, q_raw);
    linear(ctx, h, k_.w, k_raw);
    linear(ctx, h, v_.w, v);
    norm(pass, by_head(q_raw), q_norm_, by_head(q), q_inv);
    norm(pass, by_head(k_raw), k_norm_, by_head(k), k_inv);
    rope(pass, as_heads(q, heads_), false);
    rope(pass, as_heads(k, kv_heads_), false);
    Tensor o = pass.activation({t, heads_ * dim_}), lse = pass.activation({t, heads_});
    attention_forward(pass, layer_, as_heads(q, heads_), as_heads(k, kv_heads_),
                      as_heads(v, kv_heads_), as_heads(o, heads_), lse);
    linear(ctx, o, o_.w, y);
    pass.look(layer_, "queries", q);
    pass.look(layer_, "keys", k);
    pass.look(layer_, "attention", o);

    pass.save(layer_, SavedClass::kAttentionInput, "q", std::move(q));
    pass.save(layer_, SavedClass::kAttentionInput, "k", std::move(k));
    pass.save(layer_, SavedClass::kAttentionInput, "v", std::move(v));
    pass.save(layer_, SavedClass::kAttentionInput, "q_raw", std::move(q_raw));
    pass.save(layer_, SavedClass::kAttentionInput, "k_raw", std::move(k_raw));
    pass.save(layer_, SavedClass::kNorm, "q_inv", std::move(q_inv));
    pass.save(layer_, SavedClass::kNorm, "k_inv", std::move(k_inv));
    pass.save(layer_, SavedClass::kAttentionOutput, "o", std::move(o));
    pass.save(layer_, SavedClass::kAttentionOutput, "lse", std::move(lse));
  }

  void backward_input(const Pass& pass, const View&, const View& dy, const View& dh) override {
    Context& ctx = pass.ctx;
    const int64_t t = pass.tokens;
    Tensor d_o = pass.activation({t, heads_ * dim_}), dq = pass.activation({t, heads_ * dim_});
    Tensor dk = pass.activation({t, kv_heads_ * dim_}), dv = pass.activation({t, kv_heads_ * dim_});
    linear_backward_input(ctx, dy, o_.w, d_o);
    attention_backward(
        pass, layer_, as_heads(pass.fetch(layer_, "q"), heads_),
        as_heads(pass.fetch(layer_, "k"), kv_heads_), as_heads(pass.fetch(layer_, "v"), kv_heads_),
        as_heads(pass.fetch(layer_, "o"), heads_), pass.fetch(layer_, "lse"), as_heads(d_o, heads_),
        as_heads(dq, heads_), as_heads(dk, kv_heads_), as_heads(dv, kv_heads_));
    rope(pass, as_heads(dq, heads_), true);
    rope(pass, as_heads(dk, kv_heads_), true);
    norm_backward(pass, by_head(pass.fetch(layer_, "q_raw")), q_norm_, pass.fetch(layer_, "q_inv"),
                  by_head(dq), by_head(dq));
    norm_backward(pass, by_head(pass.fetch(layer_, "k_raw")), k_norm_, pass.fetch(layer_, "k_inv"),
                  by_head(dk), by_head(dk));
    linear_backward_input(ctx, dq, q_.w, dh);
    linear_backward_input(ctx, dk, k_.w, dh, true);
    linear_backward_input(ctx, dv, v_.w, dh, true);
    pass.save(layer_, SavedClass::kGradient, "d_q", std::move(dq));
    pass.save(layer_, SavedClass::kGradient, "d_k", std::move(dk));
    pass.save(layer_, SavedClass::kGradient, "d_v", std::move(dv));
  }

  void backward_weight(const Pass& pass, const View& h, const View& dy) override {
    Context& ctx = pass.ctx;
    linear_backward_weight(ctx, dy, pass.fetch(layer_, "o"), o_.grad);
    linear_backward_weight(ctx, pass.fetch(layer_, "d_q"), h, q_.grad);
    linear_backward_weight(ctx, pass.fetch(layer_, "d_k"), h, k_.grad);
    linear_backward_weight(ctx, pass.fetch(layer_, "d_v"), h, v_.grad);
  }

 private:
  View by_head(const View& x) const { return x.reshape({x.elements() / dim_, dim_}); }
  void rope(const Pass& pass, const View& x, bool inverse) const {
    launch(pass.ctx, RopeArgs{x, x, pass.cos, pass.sin, pass.config.rope_interleave, inverse});
  }

  const int64_t layer_, heads_, kv_heads_, dim_;
  Weight q_, k_, v_, o_, q_norm_, k_norm_;
};

}  // namespace

std::unique_ptr<Sublayer> make_gqa(const ModelConfig& config, const Weights& weights,
                                   const std::string& prefix, int64_t layer) {
  return std::make_unique<Gqa>(config, weights, prefix, layer);
}

}  // namespace rondo

#include "model/layers/decoder.h"

namespace rondo {
namespace {

constexpr int64_t kAttentionSite = 1, kMlpSite = 2;  // of dropout; 0 is inside attention

bool drops(const Pass& pass) {
  return pass.training && pass.options.dropout > 0;
}

void dropout(const Pass& pass, int64_t layer, int64_t site, const View& x, const View& y) {
  launch(pass.ctx, DropoutArgs{x, y, pass.places, static_cast<float>(pass.options.dropout),
                               dropout_seed(pass.options.seed, pass.step, layer, site)});
}

}  // namespace

DecoderLayer::DecoderLayer(const ModelConfig& config, const Weights& weights,
                           const std::string& prefix, int64_t layer, const View& counts)
    : layer_(layer),
      norm_attention_(weights, prefix + ".input_layernorm.weight"),
      norm_mlp_(weights, prefix + ".post_attention_layernorm.weight"),
      attention_(config.attention == ModelConfig::Attention::kMla
                     ? make_mla(config, weights, prefix + ".self_attn", layer)
                     : make_gqa(config, weights, prefix + ".self_attn", layer)),
      mlp_(config.is_moe(layer)
               ? make_moe(config, weights, prefix + ".mlp", layer, counts)
               : make_mlp(weights, prefix + ".mlp", layer, config.intermediate_size)) {}

Tensor DecoderLayer::forward(const Pass& pass, Tensor x) {
  const int64_t t = pass.tokens, width = pass.config.hidden_size;
  Tensor h1 = pass.activation({t, width}), inv1 = pass.activation({t});
  Tensor h2 = pass.activation({t, width}), inv2 = pass.activation({t});
  Tensor middle = pass.activation({t, width}), y = pass.activation({t, width});
  norm(pass, x, norm_attention_, h1, inv1);
  attention_->forward(pass, h1, y);
  if (drops(pass)) dropout(pass, layer_, kAttentionSite, y, y);
  launch(pass.ctx, RmsNormArgs{.x = y,
                               .residual = x,
                               .sum = middle,
                               .w = norm_mlp_.w,
                               .y = h2,
                               .inv_rms = inv2,
                               .eps = static_cast<float>(pass.config.rms_norm_eps)});
  pass.look(layer_, "after attention", middle);
  mlp_->forward(pass, h2, y);
  if (drops(pass)) dropout(pass, layer_, kMlpSite, y, y);
  add_to(pass.ctx, middle, y);
  pass.look(layer_, "after feed-forward", y);
  pass.save(layer_, SavedClass::kResidual, "x", std::move(x));
  pass.save(layer_, SavedClass::kResidual, "middle", std::move(middle));
  pass.save(layer_, SavedClass::kNorm, "h1", std::move(h1));
  pass.save(layer_, SavedClass::kNorm, "h2", std::move(h2));
  pass.save(layer_, SavedClass::kNorm, "inv1", std::move(inv1));
  pass.save(layer_, SavedClass::kNorm, "inv2", std::move(inv2));
  return y;
}

View DecoderLayer::through_dropout(const Pass& pass, int64_t site, const View& dy,
                                   const char* name) const {
  if (!drops(pass)) return dy;
  Tensor dropped = pass.activation({pass.tokens, pass.config.hidden_size});
  const View view = dropped;
  dropout(pass, layer_, site, dy, view);
  pass.save(layer_, SavedClass::kGradient, name, std::move(dropped));
  return view;
}

Tensor DecoderLayer::backward_input(const Pass& pass, Tensor dy) {
  const int64_t t = pass.tokens, width = pass.config.hidden_size;
  const Tensor dh = pass.activation({t, width});
  Tensor d_middle = pass.activation({t, width}), dx = pass.activation({t, width});
  mlp_->backward_input(pass, pass.fetch(layer_, "h2"), through_dropout(pass, kMlpSite, dy, "d_mlp"),
                       dh);
  copy_rows(pass.ctx, dy, d_middle);
  norm_backward(pass, pass.fetch(layer_, "middle"), norm_mlp_, pass.fetch(layer_, "inv2"), dh,
                d_middle, true);
  attention_->backward_input(pass, pass.fetch(layer_, "h1"),
                             through_dropout(pass, kAttentionSite, d_middle, "d_attention"), dh);
  copy_rows(pass.ctx, d_middle, dx);
  norm_backward(pass, pass.fetch(layer_, "x"), norm_attention_, pass.fetch(layer_, "inv1"), dh, dx,
                true);
  pass.save(layer_, SavedClass::kGradient, "dy", std::move(dy));
  pass.save(layer_, SavedClass::kGradient, "d_middle", std::move(d_middle));
  return dx;
}

void DecoderLayer::backward_weight(const Pass& pass) {
  mlp_->backward_weight(pass, pass.fetch(layer_, "h2"),
                        pass.fetch(layer_, drops(pass) ? "d_mlp" : "dy"));
  attention_->backward_weight(pass, pass.fetch(layer_, "h1"),
                              pass.fetch(layer_, drops(pass) ? "d_attention" : "d_middle"));
  pass.saved.release(pass.micro_batch, layer_);
}

}  // namespace rondo

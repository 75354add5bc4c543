// What a decoder layer is made of: attention and feed-forward parts with one interface.
#pragma once

#include <memory>

#include "model/layers/pass.h"

namespace rondo {

class Sublayer {
 public:
  virtual ~Sublayer() = default;
  // y [T, H] from the normed h [T, H].
  virtual void forward(const Pass& pass, const View& h, const View& y) = 0;
  // Writes dh from dy, h as before. May add small weight gradients (norms), and those of rows that
  // only visit; keeps what backward_weight needs.
  virtual void backward_input(const Pass& pass, const View& h, const View& dy, const View& dh) = 0;
  // Adds the weight gradients; h and dy as before. Complete after both.
  virtual void backward_weight(const Pass& pass, const View& h, const View& dy) = 0;
};

// Of layer `layer`, whose hub names begin with `prefix` ("model.layers.3.self_attn").
std::unique_ptr<Sublayer> make_mla(const ModelConfig& config, const Weights& weights,
                                   const std::string& prefix, int64_t layer);
std::unique_ptr<Sublayer> make_gqa(const ModelConfig& config, const Weights& weights,
                                   const std::string& prefix, int64_t layer);
// `inner`: the hidden width of the dense MLP.
std::unique_ptr<Sublayer> make_mlp(const Weights& weights, const std::string& prefix, int64_t layer,
                                   int64_t inner);
// `counts`: i64 [E], added to.
std::unique_ptr<Sublayer> make_moe(const ModelConfig& config, const Weights& weights,
                                   const std::string& prefix, int64_t layer, const View& counts);

}  // namespace rondo

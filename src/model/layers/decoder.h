// One decoder layer: x + attention(norm(x)), then that plus the feed-forward of its norm.
#pragma once

#include "model/layers/sublayer.h"

namespace rondo {

class DecoderLayer {
 public:
  // `prefix` "model.layers.3"; `counts` i64 [E] when the layer is routed, else null.
  DecoderLayer(const ModelConfig& config, const Weights& weights, const std::string& prefix,
               int64_t layer, const View& counts);

  // Takes the residual stream x [T, H], gives the next.
  Tensor forward(const Pass& pass, Tensor x);
  // Takes dy of what forward gave, gives dx. backward_weight then adds the weight gradients and
  // releases what the layer saved; complete after both.
  Tensor backward_input(const Pass& pass, Tensor dy);
  void backward_weight(const Pass& pass);

 private:
  // The gradient that reaches a sublayer through dropout: dy itself when there is none.
  View through_dropout(const Pass& pass, int64_t site, const View& dy, const char* name) const;

  const int64_t layer_;
  const Weight norm_attention_, norm_mlp_;
  std::unique_ptr<Sublayer> attention_, mlp_;
};

}  // namespace rondo

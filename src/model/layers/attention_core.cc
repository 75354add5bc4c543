#include "model/layers/attention_core.h"

namespace rondo {
namespace {

RingShape shape_of(const Pass& pass, int64_t layer, const View& q, const View& k, const View& v) {
  RingShape shape{.heads = q.shape[1],
                  .key_heads = k.shape[1],
                  .dqk = q.shape[2],
                  .dv = v.shape[2],
                  .scale = static_cast<float>(softmax_scale(pass.config)),
                  .window = pass.config.sliding_window};
  if (pass.training && pass.options.attention_dropout > 0)
    shape.dropout = {static_cast<float>(pass.options.attention_dropout),
                     dropout_seed(pass.options.seed, pass.step, layer, 0)};
  return shape;
}

}  // namespace

void attention_forward(const Pass& pass, int64_t layer, const View& q, const View& k, const View& v,
                       const View& o, const View& lse) {
  ring_attention_forward(pass.ctx, pass.groups.context, pass.ring, shape_of(pass, layer, q, k, v),
                         q, k, v, pass.places, o, lse);
}

void attention_backward(const Pass& pass, int64_t layer, const View& q, const View& k,
                        const View& v, const View& o, const View& lse, const View& d_o,
                        const View& dq, const View& dk, const View& dv) {
  ring_attention_backward(pass.ctx, pass.groups.context, pass.ring, shape_of(pass, layer, q, k, v),
                          q, k, v, pass.places, o, lse, d_o, dq, dk, dv);
}

}  // namespace rondo

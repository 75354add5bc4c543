#include "model/layers/attention_core.h"

#include "kernels/ops/attention.h"

namespace rondo {
namespace {

AttentionDropout dropout_of(const Pass& pass, int64_t layer) {
  if (!pass.training || pass.options.attention_dropout == 0) return {};
  return {static_cast<float>(pass.options.attention_dropout),
          dropout_seed(pass.options.seed, pass.step, layer, 0)};
}

}  // namespace

void attention_forward(const Pass& pass, int64_t layer, const View& q, const View& k, const View& v,
                       const View& o, const View& lse) {
  const Tensor m = pass.activation({q.shape[0], q.shape[1]});
  const Tensor l = pass.activation({q.shape[0], q.shape[1]});
  launch(pass.ctx, AttentionBlockArgs{.q = q,
                                      .k = k,
                                      .v = v,
                                      .q_places = pass.places,
                                      .k_places = pass.places,
                                      .m = m,
                                      .l = l,
                                      .a = o,
                                      .first = true,
                                      .scale = static_cast<float>(softmax_scale(pass.config)),
                                      .window = pass.config.sliding_window,
                                      .dropout = dropout_of(pass, layer)});
  launch(pass.ctx, AttentionFinishArgs{m, l, o, o, lse});
}

void attention_backward(const Pass& pass, int64_t layer, const View& q, const View& k,
                        const View& v, const View& o, const View& lse, const View& d_o,
                        const View& dq, const View& dk, const View& dv) {
  const Tensor delta = pass.activation({q.shape[0], q.shape[1]});
  launch(pass.ctx, AttentionDeltaArgs{o, d_o, delta});
  launch(pass.ctx, AttentionBackwardArgs{.q = q,
                                         .k = k,
                                         .v = v,
                                         .q_places = pass.places,
                                         .k_places = pass.places,
                                         .lse = lse,
                                         .delta = delta,
                                         .d_o = d_o,
                                         .dq = dq,
                                         .dk = dk,
                                         .dv = dv,
                                         .scale = static_cast<float>(softmax_scale(pass.config)),
                                         .window = pass.config.sliding_window,
                                         .dropout = dropout_of(pass, layer)});
}

}  // namespace rondo

// The attention core of both families: queries, keys and values in, output and its backward.
#pragma once

#include "model/layers/pass.h"

namespace rondo {

// Writes o [T, Hq, dv] and lse [T, Hq].
void attention_forward(const Pass& pass, int64_t layer, const View& q, const View& k, const View& v,
                       const View& o, const View& lse);
// Writes dq, dk, dv from d_o.
void attention_backward(const Pass& pass, int64_t layer, const View& q, const View& k,
                        const View& v, const View& o, const View& lse, const View& d_o,
                        const View& dq, const View& dk, const View& dv);

}  // namespace rondo

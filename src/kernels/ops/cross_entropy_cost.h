#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// An exponential counts as 4: 6 an element for the largest, the distance's exponential and the sum,
// and one for the gradient. Reads logits and labels, writes the loss, and the gradient in place.
inline Cost cross_entropy_cost(int64_t tokens, int64_t classes, bool gradient,
                               int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), n = t * static_cast<double>(classes),
               size = static_cast<double>(element_bytes);
  const double flops = n * (gradient ? 7 : 6);
  return {flops, flops, size * (n * (gradient ? 2 : 1) + t) + 4 * t};
}

}  // namespace rondo

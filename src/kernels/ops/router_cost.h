#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// A sigmoid or exponential counts as 4, the weights as 8 a chosen expert. The choice itself is
// comparisons, not FLOPs. Reads logits and places (4 words), writes experts and weights.
inline Cost router_cost(int64_t tokens, int64_t experts, int64_t k, int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), e = static_cast<double>(experts),
               c = static_cast<double>(k), size = static_cast<double>(element_bytes);
  const double flops = t * (4 * e + 8 * c);
  return {flops, flops, t * (size * (e + c) + 4 * (c + 4)) + size * e};
}

// 12 a chosen expert. Reads the chosen logits, experts, rows and gradients, writes every d_logit.
inline Cost router_backward_cost(int64_t tokens, int64_t experts, int64_t k,
                                 int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), e = static_cast<double>(experts),
               c = static_cast<double>(k), size = static_cast<double>(element_bytes);
  return {12 * t * c, 12 * t * c, t * (size * (e + 2 * c) + 8 * c)};
}

}  // namespace rondo

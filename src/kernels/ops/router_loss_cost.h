#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// Two exponentials (4 each), a division and three sums an element. Reads logits, experts and
// places, writes counts and sums of each document.
inline Cost router_stats_cost(int64_t tokens, int64_t experts, int64_t k, int64_t docs,
                              int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), e = static_cast<double>(experts),
               d = static_cast<double>(docs), size = static_cast<double>(element_bytes);
  return {12 * t * e, 12 * t * e,
          t * (size * e + 4 * (static_cast<double>(k) + 4)) + size * (2 * d * e + d + 1)};
}

inline Cost router_loss_cost(int64_t experts, int64_t docs, int64_t element_bytes = 4) {
  const double n = static_cast<double>(docs) * static_cast<double>(experts);
  return {2 * n, 2 * n,
          static_cast<double>(element_bytes) * (2 * n + static_cast<double>(docs) + 5)};
}

// Three exponentials (4 each) and 12 more an element. Reads logits, places and counts, updates
// d_logits.
inline Cost router_loss_backward_cost(int64_t tokens, int64_t experts, int64_t docs,
                                      int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), e = static_cast<double>(experts),
               d = static_cast<double>(docs), size = static_cast<double>(element_bytes);
  return {24 * t * e, 24 * t * e, t * (3 * size * e + 16) + size * (d * e + d)};
}

}  // namespace rondo

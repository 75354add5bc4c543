#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// 14 an element. Reads p, m, v and grad, writes p, m and v.
inline Cost adamw_cost(int64_t elements, int64_t element_bytes = 4) {
  const double n = static_cast<double>(elements);
  return {14 * n, 14 * n, 7 * static_cast<double>(element_bytes) * n};
}

inline Cost router_bias_cost(int64_t experts, int64_t element_bytes = 4) {
  const double e = static_cast<double>(experts);
  return {3 * e, 3 * e, e * (8 + 2 * static_cast<double>(element_bytes))};
}

}  // namespace rondo

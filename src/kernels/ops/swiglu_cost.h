#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// A sigmoid counts as 4; two products, and one more with weights. Reads x, writes y; of rows in
// use.
inline Cost swiglu_cost(int64_t rows, int64_t cols, bool weights = false,
                        int64_t element_bytes = 4) {
  const double r = static_cast<double>(rows), n = r * static_cast<double>(cols),
               size = static_cast<double>(element_bytes);
  const double flops = n * (weights ? 7 : 6);
  return {flops, flops, size * 3 * n + (weights ? (size + 4) * r : 0)};
}

// 8 more than the sigmoid; the product with the weight and the dot product for its gradient; the
// forward result again. Reads x and dy, writes dx and, where asked for, y.
inline Cost swiglu_backward_cost(int64_t rows, int64_t cols, bool weights = false, bool y = false,
                                 int64_t element_bytes = 4) {
  const double r = static_cast<double>(rows), n = r * static_cast<double>(cols),
               size = static_cast<double>(element_bytes);
  const double model = n * (weights ? 15 : 12);
  return {model, model + (y ? n * (weights ? 2 : 1) : 0),
          size * n * (y ? 6 : 5) + (weights ? (2 * size + 4) * r : 0)};
}

}  // namespace rondo

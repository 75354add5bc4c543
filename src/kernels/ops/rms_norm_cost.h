#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// Square, add, scale, weight: 4 a element. Reads x and w, writes y and inv_rms.
inline Cost rms_norm_cost(int64_t rows, int64_t cols, int64_t element_bytes = 4) {
  const double n = static_cast<double>(rows) * static_cast<double>(cols);
  return {4 * n, 4 * n,
          static_cast<double>(element_bytes) * (2 * n + static_cast<double>(rows + cols))};
}

inline Cost rms_norm_backward_cost(int64_t rows, int64_t cols, int64_t element_bytes = 4) {
  const double n = static_cast<double>(rows) * static_cast<double>(cols);
  return {8 * n, 8 * n,
          static_cast<double>(element_bytes) * (3 * n + static_cast<double>(rows + 3 * cols))};
}

}  // namespace rondo

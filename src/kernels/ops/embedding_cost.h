#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// No FLOPs. A row of the table for each id, read and written.
inline Cost embedding_cost(int64_t tokens, int64_t width, int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), n = t * static_cast<double>(width);
  return {0, 0, static_cast<double>(element_bytes) * 2 * n + 4 * t};
}

// One addition an element. Reads dy, and reads and writes each of the `distinct` rows once.
inline Cost embedding_backward_cost(int64_t tokens, int64_t distinct, int64_t width,
                                    int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), w = static_cast<double>(width);
  return {t * w, t * w,
          static_cast<double>(element_bytes) * w * (t + 2 * static_cast<double>(distinct)) + 4 * t};
}

}  // namespace rondo

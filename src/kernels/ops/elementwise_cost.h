#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

inline Cost fill_cost(int64_t elements, int64_t element_bytes = 4) {
  return {0, 0, static_cast<double>(elements) * static_cast<double>(element_bytes)};
}

// y is read only where beta is not 0.
inline Cost axpby_cost(int64_t elements, bool beta, int64_t element_bytes = 4) {
  const double n = static_cast<double>(elements);
  const double flops = n * (beta ? 3 : 1);
  return {flops, flops, n * (beta ? 3 : 2) * static_cast<double>(element_bytes)};
}

// One product an element: the random numbers are integer work, not FLOPs. Reads x and the places.
inline Cost dropout_cost(int64_t tokens, int64_t width, int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), n = t * static_cast<double>(width);
  return {n, n, 2 * n * static_cast<double>(element_bytes) + 16 * t};
}

}  // namespace rondo

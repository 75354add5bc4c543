#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// An addition an element, and for squares a product; counting is comparisons, not FLOPs, but stands
// as one.
inline Cost reduce_cost(int64_t elements, bool squares = false, int64_t element_bytes = 4) {
  const double n = static_cast<double>(elements);
  const double flops = n * (squares ? 2 : 1);
  return {flops, flops, n * static_cast<double>(element_bytes)};
}

}  // namespace rondo

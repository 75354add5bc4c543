#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// A cosine and a sine (20 each), angle and scale an element. Reads places and inv_freq (f64),
// writes both tables.
inline Cost rope_table_cost(int64_t tokens, int64_t half, int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), h = static_cast<double>(half);
  return {43 * t * h, 43 * t * h, 16 * t + 8 * h + 2 * static_cast<double>(element_bytes) * t * h};
}

// Four products and two sums a pair and turned head; where one head of x becomes many of y, it is
// turned once. Reads x and the tables, writes y.
inline Cost rope_cost(int64_t tokens, int64_t x_heads, int64_t y_heads, int64_t d,
                      int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), n = static_cast<double>(d),
               x = static_cast<double>(x_heads), y = static_cast<double>(y_heads);
  const double flops = t * x * n * (x_heads > y_heads ? 4 : 3);
  return {flops, flops, static_cast<double>(element_bytes) * t * n * (x + y + 1)};
}

}  // namespace rondo

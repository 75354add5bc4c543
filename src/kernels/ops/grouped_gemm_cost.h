#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// `rows` are those that belong to a group. Every group is taken to own some, so that its matrix is
// read; an index a row where rows are gathered.
inline Cost grouped_gemm_cost(int64_t rows, int64_t groups, int64_t n, int64_t k,
                              bool gathered = false, int64_t element_bytes = 4) {
  const double r = static_cast<double>(rows), e = static_cast<double>(groups),
               dn = static_cast<double>(n), dk = static_cast<double>(k);
  const double flops = 2 * r * dn * dk;
  return {flops, flops,
          static_cast<double>(element_bytes) * (r * (dk + dn) + e * dn * dk) +
              4 * (e + 1 + (gathered ? r : 0.0))};
}

// `gathered` of the two operands come with a list of rows.
inline Cost grouped_wgrad_cost(int64_t rows, int64_t groups, int64_t n, int64_t k,
                               bool accumulate = true, int gathered = 0,
                               int64_t element_bytes = 4) {
  const double r = static_cast<double>(rows), e = static_cast<double>(groups),
               dn = static_cast<double>(n), dk = static_cast<double>(k);
  const double flops = 2 * r * dn * dk;
  return {flops, flops,
          static_cast<double>(element_bytes) *
                  (r * (dk + dn) + e * dn * dk * (accumulate ? 2.0 : 1.0)) +
              4 * (e + 1 + r * gathered)};
}

}  // namespace rondo

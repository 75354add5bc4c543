#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// Any form: the three read and write the same numbers of elements.
inline Cost gemm_cost(int64_t m, int64_t n, int64_t k, bool accumulate = false,
                      int64_t element_bytes = 4) {
  const double dm = static_cast<double>(m), dn = static_cast<double>(n),
               dk = static_cast<double>(k);
  const double flops = 2 * dm * dn * dk;
  return {flops, flops,
          static_cast<double>(element_bytes) *
              (dm * dk + dn * dk + dm * dn * (accumulate ? 2.0 : 1.0))};
}

}  // namespace rondo

#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// No FLOPs. Reads experts; writes row_token, row_slot, slot_row and, per expert, offset and count.
inline Cost route_plan_cost(int64_t tokens, int64_t experts, int64_t k) {
  const double slots = static_cast<double>(tokens) * static_cast<double>(k);
  return {0, 0, 16 * slots + 20 * static_cast<double>(experts)};
}

// An addition for each copy but the first, and for the addend.
inline Cost combine_cost(int64_t tokens, int64_t width, int64_t k, bool addend,
                         int64_t element_bytes = 4) {
  const double n = static_cast<double>(tokens) * static_cast<double>(width);
  const double copies = static_cast<double>(k) + (addend ? 1 : 0);
  return {n * (copies - 1), n * (copies - 1),
          static_cast<double>(element_bytes) * n * (copies + 1) +
              4 * static_cast<double>(tokens) * static_cast<double>(k)};
}

}  // namespace rondo

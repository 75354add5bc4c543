#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// No FLOPs anywhere here: all is moved. Reads the choices, writes two counts a tile and rank.
inline Cost dispatch_count_cost(int64_t tokens, int64_t k, int64_t ranks, int64_t tile = 64) {
  const double t = static_cast<double>(tokens),
               tiles = static_cast<double>((tokens + tile - 1) / tile);
  return {0, 0, 4 * (t * static_cast<double>(k) + static_cast<double>(ranks) * (1 + 2 * tiles))};
}

// `rows` travel, each of `width` values of tokens and 2k of choices.
inline Cost dispatch_pack_cost(int64_t tokens, int64_t rows, int64_t width, int64_t k,
                               int64_t element_bytes = 4) {
  const double t = static_cast<double>(tokens), n = static_cast<double>(rows),
               w = static_cast<double>(width), c = static_cast<double>(k),
               size = static_cast<double>(element_bytes);
  return {0, 0, size * (t * (w + c) + n * (w + 2 * c)) + 8 * t * c};
}

inline Cost dispatch_unpack_cost(int64_t rows, int64_t k, int64_t element_bytes = 4) {
  const double n = static_cast<double>(rows) * static_cast<double>(k);
  return {0, 0, n * (3 * static_cast<double>(element_bytes) + 4)};
}

inline Cost return_pack_cost(int64_t copies, int64_t width, int64_t rows, int64_t k,
                             bool extra = false, int64_t element_bytes = 4) {
  const double c = static_cast<double>(copies), w = static_cast<double>(width + (extra ? 1 : 0));
  return {0, 0,
          2 * static_cast<double>(element_bytes) * c * w +
              4 * static_cast<double>(rows) * static_cast<double>(k)};
}

}  // namespace rondo

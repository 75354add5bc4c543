// What is the same on every instruction set: how a product is cut into tiles and how much room a
// tile needs. The arithmetic is in gemm_kernel-inl.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/op.h"

namespace rondo::cpu {

// The most that one tile of c covers, and the length of one block of the sum. A block of b is 256
// KiB and stays in the second cache; a panel of a with a panel of b is about the size of the first.
// The sums are cut at kBlock wherever a tile lies, so an element's bits depend on its row of a and
// its column of b alone: not on the tiles, nor on how many rows come with it.
constexpr int64_t kTileRows = 192, kTileCols = 256, kBlock = 256;
// Every instruction set's panels divide these.
constexpr int64_t kRowStep = 12, kColStep = 32;

inline int64_t blocks_of(int64_t n, int64_t block) {
  return (n + block - 1) / block;
}
inline int64_t round_up(int64_t n, int64_t step) {
  return blocks_of(n, step) * step;
}

// `parts` ranges of nearly one length, in whole steps.
struct Cut {
  int64_t length = 0, parts = 0, total = 0;
  Cut(int64_t total, int64_t most, int64_t step) : total(total) {
    if (total == 0) return;
    length = round_up(blocks_of(total, blocks_of(total, most)), step);
    parts = blocks_of(total, length);
  }
  int64_t begin(int64_t i) const { return i * length; }
  int64_t end(int64_t i) const { return std::min(total, (i + 1) * length); }
};

// Large tiles pack less; small ones give every thread its share. Tiles are halved until there are
// 32 of them, or one takes some 50 microseconds, or packing would show: halves of 96 by 128 were 5%
// slower where the sum is long.
struct Tiling {
  Cut rows, cols;
};
inline Tiling tiling_of(int64_t m, int64_t n, int64_t k) {
  int64_t tile_m = kTileRows, tile_n = kTileCols;
  while (blocks_of(m, tile_m) * blocks_of(n, tile_n) < 32) {
    const int64_t real_m = std::min(m, tile_m), real_n = std::min(n, tile_n);
    if (real_m * real_n * k <= 2'000'000 || (real_m <= 96 && real_n <= 128)) break;
    if (real_n <= 128 || (real_m > 96 && real_m >= real_n))
      tile_m = round_up(blocks_of(real_m, 2), kRowStep);
    else
      tile_n = round_up(blocks_of(real_n, 2), kColStep);
  }
  return {Cut(m, tile_m, kRowStep), Cut(n, tile_n, kColStep)};
}

// Room for the packed blocks of one tile, as floats; a multiple of a cache line.
inline int64_t tile_floats(int64_t m, int64_t n, int64_t k) {
  return std::min(k, kBlock) * (round_up(std::min(m, kTileRows), kRowStep) +
                                round_up(std::min(n, kTileCols), kColStep)) +
         16;
}
// Room for one number of each group, and one more.
inline int64_t list_bytes(int64_t groups) {
  return (groups + 1) * static_cast<int64_t>(sizeof(int32_t));
}
constexpr int64_t kLine = 64;  // bytes: no vector of a packed panel may straddle two lines

// Each worker's part of the workspace, whose first `before` bytes serve something else.
struct Space {
  float* first;
  int64_t floats;

  static int64_t bytes(int64_t floats, int threads, int64_t before = 0) {
    return before + kLine + round_up(floats, 16) * threads * static_cast<int64_t>(sizeof(float));
  }
  Space(const View& workspace, int64_t floats, int64_t before = 0)
      : first(reinterpret_cast<float*>(
            round_up(reinterpret_cast<int64_t>(workspace.data) + before, kLine))),
        floats(round_up(floats, 16)) {}
  float* of(int worker) const { return first + worker * floats; }
};

// An operand as a product sees it: element (i, p), i its own index, p the one that is summed over.
struct Operand {
  const float* data;
  int64_t stride;
  const int32_t* rows;  // the place of each row, or null
  bool sum_is_dense;    // rows are i and columns p; otherwise rows are p
};

}  // namespace rondo::cpu

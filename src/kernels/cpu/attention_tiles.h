// How attention cuts its tokens into tiles, and which pairs of tiles meet. The same on every
// instruction set; the arithmetic is in attention-inl.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/cpu/gemm_kernel.h"
#include "kernels/ops/attention.h"

namespace rondo::cpu {

// Scores of one pair of tiles are 12 KiB; more rows would mean more masked work on the diagonal.
constexpr int64_t kQueryTile = 48, kKeyTile = 64;
static_assert(kQueryTile % kRowStep == 0 && kKeyTile % kColStep == 0);
// Tiles of queries that share one packing of the keys.
constexpr int64_t kQueriesAtOnce = 4 * kQueryTile;

inline const float* head_of(const View& view, int64_t head) {
  return static_cast<const float*>(view.data) + head * view.stride[1];
}
inline float* row_of(const View& view, int64_t token, int64_t head) {
  return static_cast<float*>(view.data) + token * view.stride[0] + head * view.stride[1];
}
inline float& scalar_of(const View& view, int64_t token, int64_t head) {
  return static_cast<float*>(view.data)[token * view.stride[0] + head];
}

// Documents and positions of a tile's tokens.
struct TileRange {
  int32_t doc_min, doc_max, pos_min, pos_max;
};

// The tokens of one side without the padding, `tile` at a time: rows that nobody wrote are never
// read. The list lies in the workspace.
class TokenTiles {
 public:
  static int64_t bytes(int64_t tokens, int64_t tile) {
    return round_up(tokens * static_cast<int64_t>(sizeof(int32_t)), kLine) +
           blocks_of(tokens, tile) * static_cast<int64_t>(sizeof(TileRange));
  }

  TokenTiles(const View& places, int64_t tile, uint8_t* space) : places_(places), tile_(tile) {
    rows_ = reinterpret_cast<int32_t*>(space);
    ranges_ = reinterpret_cast<TileRange*>(
        space + round_up(places.rows() * static_cast<int64_t>(sizeof(int32_t)), kLine));
    for (int64_t t = 0; t < places.rows(); ++t) {
      const Place at = place_of(static_cast<int32_t>(t));
      if (at.doc < 0) continue;
      TileRange& range = ranges_[size_ / tile];
      if (size_ % tile == 0) range = {at.doc, at.doc, at.pos, at.pos};
      range = {std::min(range.doc_min, at.doc), std::max(range.doc_max, at.doc),
               std::min(range.pos_min, at.pos), std::max(range.pos_max, at.pos)};
      rows_[size_++] = static_cast<int32_t>(t);
    }
  }

  int64_t size() const { return size_; }  // tokens
  int64_t tiles() const { return blocks_of(size_, tile_); }
  const TileRange& range(int64_t tile) const { return ranges_[tile]; }
  std::span<const int32_t> rows(int64_t tile) const {
    const int64_t begin = tile * tile_;
    return {rows_ + begin, static_cast<size_t>(std::min(tile_, size_ - begin))};
  }
  Place place_of(int32_t row) const {
    const int32_t* p = static_cast<const int32_t*>(places_.data) + row * places_.stride[0];
    return {p[0], p[1], p[2], p[3]};
  }

 private:
  View places_;
  int64_t tile_, size_ = 0;
  int32_t* rows_;
  TileRange* ranges_;
};

// How many of the pairs of two tiles are visible.
enum class Meeting { kNone, kSome, kAll };

inline Meeting meeting_of(const TileRange& q, const TileRange& k, int64_t window) {
  const int64_t nearest = int64_t{q.pos_min} - k.pos_max;  // smallest and largest pos_q - pos_k
  const int64_t farthest = int64_t{q.pos_max} - k.pos_min;
  if (q.doc_max < k.doc_min || k.doc_max < q.doc_min || farthest < 0) return Meeting::kNone;
  if (window > 0 && nearest >= window) return Meeting::kNone;
  const bool one_document =
      q.doc_min == q.doc_max && k.doc_min == k.doc_max && q.doc_min == k.doc_min;
  return one_document && nearest >= 0 && (window == 0 || farthest < window) ? Meeting::kAll
                                                                            : Meeting::kSome;
}

// Cuts a worker's space into parts that begin on a cache line; in floats.
class Room {
 public:
  int64_t take(int64_t floats) {
    const int64_t at = total_;
    total_ += round_up(floats, 16);
    return at;
  }
  int64_t total() const { return total_; }

 private:
  int64_t total_ = 0;
};

// Bytes of both lists of tokens, which stand before the workers' spaces.
inline int64_t lists_bytes(const View& q_places, const View& k_places) {
  return round_up(TokenTiles::bytes(q_places.rows(), kQueryTile), kLine) +
         TokenTiles::bytes(k_places.rows(), kKeyTile);
}
struct TokenLists {
  TokenTiles queries, keys;

  TokenLists(const View& q_places, const View& k_places, const View& workspace)
      : queries(q_places, kQueryTile, static_cast<uint8_t*>(workspace.data)),
        keys(k_places, kKeyTile,
             static_cast<uint8_t*>(workspace.data) +
                 round_up(TokenTiles::bytes(q_places.rows(), kQueryTile), kLine)) {}
};

}  // namespace rondo::cpu

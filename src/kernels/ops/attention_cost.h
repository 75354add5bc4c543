#pragma once

#include <cstdint>

#include "kernels/ops/cost.h"

namespace rondo {

// Shapes of one call. `pairs` are the visible (query, key) pairs of one head: L (L + 1) / 2 for a
// whole document of L tokens. `computed_pairs` are those of every tile that is not skipped.
struct AttentionShape {
  int64_t queries, keys, heads, key_heads, dqk, dv;
  double pairs, computed_pairs;
};

// Scores and weighted sum: 2 (dqk + dv) a pair and head; exponential (4), scale, maximum and sum
// besides. Reads q, k, v and places, writes the state.
inline Cost attention_block_cost(const AttentionShape& s, int64_t element_bytes = 4) {
  const double heads = static_cast<double>(s.heads), tq = static_cast<double>(s.queries),
               tk = static_cast<double>(s.keys), dqk = static_cast<double>(s.dqk),
               dv = static_cast<double>(s.dv), key_heads = static_cast<double>(s.key_heads);
  const double a_pair = heads * (2 * (dqk + dv) + 7);
  return {s.pairs * a_pair, s.computed_pairs * a_pair,
          static_cast<double>(element_bytes) *
                  (tq * heads * (dqk + dv + 2) + tk * key_heads * (dqk + dv)) +
              16 * (tq + tk)};
}

// Scales a to o, one logarithm (10) a row. Reads the state, writes o and lse.
inline Cost attention_finish_cost(int64_t queries, int64_t heads, int64_t dv,
                                  int64_t element_bytes = 4) {
  const double rows = static_cast<double>(queries) * static_cast<double>(heads),
               d = static_cast<double>(dv);
  return {rows * (d + 12), rows * (d + 12),
          static_cast<double>(element_bytes) * rows * (2 * d + 3)};
}

// Reads o and d_o, writes delta.
inline Cost attention_delta_cost(int64_t queries, int64_t heads, int64_t dv,
                                 int64_t element_bytes = 4) {
  const double rows = static_cast<double>(queries) * static_cast<double>(heads),
               d = static_cast<double>(dv);
  return {2 * rows * d, 2 * rows * d, static_cast<double>(element_bytes) * rows * (2 * d + 1)};
}

// Scores again and four more products: 2 (3 dqk + 2 dv) a pair and head. Recomputing the scores is
// no model FLOP: backward's model is twice forward's. `passes` = 2 where dq and dk, dv are computed
// apart, each with its own scores and d_o v^T.
inline Cost attention_backward_cost(const AttentionShape& s, int passes = 1,
                                    int64_t element_bytes = 4) {
  const double heads = static_cast<double>(s.heads), tq = static_cast<double>(s.queries),
               tk = static_cast<double>(s.keys), dqk = static_cast<double>(s.dqk),
               dv = static_cast<double>(s.dv), key_heads = static_cast<double>(s.key_heads);
  const double again = 2 * (dqk + dv) + 8;
  return {s.pairs * heads * (4 * (dqk + dv) + 3),
          s.computed_pairs * heads * (2 * (2 * dqk + dv) + again * passes),
          static_cast<double>(element_bytes) *
                  (tq * heads * (2 * dqk + dv + 2) + 2 * tk * key_heads * (dqk + dv)) +
              16 * (tq + tk)};
}

}  // namespace rondo

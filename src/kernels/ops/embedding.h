// Rows of a table by token id.
#pragma once

#include "kernels/op.h"

namespace rondo {

struct EmbeddingArgs {
  static constexpr const char* kName = "embedding";
  static constexpr double kTolerance = 0;

  View table;  // [V, H]
  View ids;    // i32 [T], each in [0, V)
  View y;      // [T, H]

  void check() const {
    RONDO_RULE(table.rank == 2 && y.rank == 2 && table.cols() == y.cols() && ids.rank == 1 &&
                   ids.shape[0] == y.rows(),
               "table {}, ids {}, y {}", to_string(table), to_string(ids), to_string(y));
  }
  template <class F>
  void views(F&& f) {
    f(table, Role::kIn);
    f(ids, Role::kIn);
    f(y, Role::kOut);
  }
};

// d_table[ids[t]] += dy[t], for each row of the table in the order of t (no atomics).
struct EmbeddingBackwardArgs {
  static constexpr const char* kName = "embedding_backward";
  static constexpr double kTolerance = 2e-6;

  View ids;      // i32 [T]
  View dy;       // [T, H]
  View d_table;  // [V, H], added to

  void check() const {
    RONDO_RULE(d_table.rank == 2 && dy.rank == 2 && d_table.cols() == dy.cols() && ids.rank == 1 &&
                   ids.shape[0] == dy.rows(),
               "ids {}, dy {}, d_table {}", to_string(ids), to_string(dy), to_string(d_table));
  }
  template <class F>
  void views(F&& f) {
    f(ids, Role::kIn);
    f(dy, Role::kIn);
    f(d_table, Role::kInOut);
  }
};

template <>
std::span<const Implementation<EmbeddingArgs>> implementations<EmbeddingArgs>();
template <>
std::span<const Implementation<EmbeddingBackwardArgs>> implementations<EmbeddingBackwardArgs>();

}  // namespace rondo

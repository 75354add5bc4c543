// Rows that cross ranks on their way to experts and back.
//
// Rank r of the expert axis has the experts [bounds[r], bounds[r + 1]). A token travels once to
// each rank that has some of its experts, with all of its choices: a row is
//   [x | more | expert of choice j, numbered within its rank, or -1 | weight of choice j]
// of H + M + k + k elements. Rows go rank by rank, within a rank in the order of tokens. What comes
// back is a copy for each choice: rank by rank, within a rank by token, then by j.
#pragma once

#include "kernels/op.h"

namespace rondo {

// How many rows (first number) and copies (second) each tile of tokens has for each rank.
struct DispatchCountArgs {
  static constexpr const char* kName = "dispatch_count";
  static constexpr double kTolerance = 0;

  View experts;  // i32 [T, k]; -1: nowhere
  View bounds;   // i32 [R + 1]
  View counts;   // i32 [ceil(T / tile), R, 2]
  int64_t tile = 64;

  void check() const {
    RONDO_RULE(experts.rank == 2 && bounds.rank == 1 && bounds.shape[0] >= 2,
               "experts {}, bounds {}", to_string(experts), to_string(bounds));
    RONDO_RULE(tile > 0 && counts.rank == 3 && counts.is_dense() &&
                   counts.shape[0] == (experts.rows() + tile - 1) / tile &&
                   counts.shape[1] == bounds.shape[0] - 1 && counts.shape[2] == 2,
               "counts {} for experts {}, tiles of {}", to_string(counts), to_string(experts),
               tile);
  }
  template <class F>
  void views(F&& f) {
    f(experts, Role::kIn);
    f(bounds, Role::kIn);
    f(counts, Role::kOut);
  }
};

// Rows of these tokens, and where their copies will return: numbered from `first_copy` on.
struct DispatchPackArgs {
  static constexpr const char* kName = "dispatch_pack";
  static constexpr double kTolerance = 0;

  View x;                  // [T, H]
  View more;               // [T, M] or null
  View experts;            // i32 [T, k]
  View weights;            // [T, k]
  View bounds;             // i32 [R + 1]
  View rows;               // [N, H + M + 2k]: N as dispatch_count says
  View slot_copy;          // i32 [T, k]; -1: no copy
  int64_t first_copy = 0;  // of the tokens here

  int64_t row_width() const { return x.cols() + (more ? more.cols() : 0) + 2 * experts.cols(); }

  void check() const {
    RONDO_RULE(x.rank == 2 && experts.rank == 2 && experts.rows() == x.rows() &&
                   same_shape(experts, weights) && same_shape(experts, slot_copy) &&
                   (!more || (more.rank == 2 && more.rows() == x.rows())),
               "x {}, more {}, experts {}, weights {}, slot_copy {}", to_string(x), to_string(more),
               to_string(experts), to_string(weights), to_string(slot_copy));
    RONDO_RULE(rows.rank == 2 && rows.cols() == row_width() && bounds.rank == 1,
               "rows {}, bounds {}", to_string(rows), to_string(bounds));
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(more, Role::kIn);
    f(experts, Role::kIn);
    f(weights, Role::kIn);
    f(bounds, Role::kIn);
    f(rows, Role::kOut);
    f(slot_copy, Role::kOut);
  }
};

// The choices out of rows that have arrived; x is read where it is.
struct DispatchUnpackArgs {
  static constexpr const char* kName = "dispatch_unpack";
  static constexpr double kTolerance = 0;

  View rows;     // [N, W]: the last 2k columns are read
  View experts;  // i32 [N, k]
  View weights;  // [N, k]

  void check() const {
    RONDO_RULE(rows.rank == 2 && experts.rank == 2 && same_shape(experts, weights) &&
                   rows.rows() == experts.rows() && rows.cols() >= 2 * experts.cols(),
               "rows {}, experts {}, weights {}", to_string(rows), to_string(experts),
               to_string(weights));
  }
  template <class F>
  void views(F&& f) {
    f(rows, Role::kIn);
    f(experts, Role::kOut);
    f(weights, Role::kOut);
  }
};

// Copies on their way back, out of rows sorted by expert: copy c is x[slot_row of the c-th choice
// that has a row], with `extra` of that row behind it.
struct ReturnPackArgs {
  static constexpr const char* kName = "return_pack";
  static constexpr double kTolerance = 0;

  View x;         // [R, H]
  View extra;     // [R] or null
  View slot_row;  // i32 [N, k]; -1: no row
  View copies;    // [C, H (+ 1)]: as many as slot_row has rows

  void check() const {
    RONDO_RULE(x.rank == 2 && slot_row.rank == 2 && copies.rank == 2 &&
                   copies.cols() == x.cols() + (extra ? 1 : 0) &&
                   (!extra || (extra.rank == 1 && extra.shape[0] == x.rows())),
               "x {}, extra {}, slot_row {}, copies {}", to_string(x), to_string(extra),
               to_string(slot_row), to_string(copies));
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(extra, Role::kIn);
    f(slot_row, Role::kIn);
    f(copies, Role::kOut);
  }
};

template <>
std::span<const Implementation<DispatchCountArgs>> implementations<DispatchCountArgs>();
template <>
std::span<const Implementation<DispatchPackArgs>> implementations<DispatchPackArgs>();
template <>
std::span<const Implementation<DispatchUnpackArgs>> implementations<DispatchUnpackArgs>();
template <>
std::span<const Implementation<ReturnPackArgs>> implementations<ReturnPackArgs>();

}  // namespace rondo

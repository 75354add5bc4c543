// From the router's choice to ragged groups of rows, and back.
//
// A slot is one copy of a token: slot = token * k + j. Rows are slots sorted by expert and, within
// an expert, by slot. The handle is flat and of a size known beforehand; padding has no row.
#pragma once

#include "kernels/op.h"

namespace rondo {

struct RoutePlanArgs {
  static constexpr const char* kName = "route_plan";
  static constexpr double kTolerance = 0;

  View experts;    // i32 [T, k]; -1: nowhere
  View offsets;    // i32 [E + 1]: rows of expert e are [offsets[e], offsets[e + 1])
  View counts;     // i64 [E], added to: tokens of each expert, for metrics and the router's bias
  View row_token;  // i32 [T * k]; 0 past the last row
  View row_slot;   // i32 [T * k]; 0 past the last row
  View slot_row;   // i32 [T, k]; -1: no row

  void check() const {
    RONDO_RULE(experts.rank == 2 && same_shape(experts, slot_row), "experts {}, slot_row {}",
               to_string(experts), to_string(slot_row));
    RONDO_RULE(offsets.rank == 1 && counts.rank == 1 && offsets.shape[0] == counts.shape[0] + 1,
               "offsets {}, counts {}", to_string(offsets), to_string(counts));
    RONDO_RULE(row_token.rank == 1 && row_token.shape[0] == experts.elements() &&
                   same_shape(row_token, row_slot),
               "row_token {}, row_slot {}", to_string(row_token), to_string(row_slot));
  }
  template <class F>
  void views(F&& f) {
    f(experts, Role::kIn);
    f(offsets, Role::kOut);
    f(counts, Role::kInOut);
    f(row_token, Role::kOut);
    f(row_slot, Role::kOut);
    f(slot_row, Role::kOut);
  }
};

// y[t] = sum over j, in the order of j, of x[slot_row[t, j]], in fp32. With `addend`, it comes
// last. It is also the gradient of a gather of tokens to rows.
struct CombineArgs {
  static constexpr const char* kName = "combine";
  static constexpr double kTolerance = 1e-6;

  View x;         // [R, H]
  View slot_row;  // i32 [T, k]
  View addend;    // [T, H] or null; may be y
  View y;         // [T, H]

  void check() const {
    RONDO_RULE(x.rank == 2 && y.rank == 2 && x.cols() == y.cols() && slot_row.rank == 2 &&
                   slot_row.rows() == y.rows() && (!addend || same_shape(addend, y)),
               "x {}, slot_row {}, addend {}, y {}", to_string(x), to_string(slot_row),
               to_string(addend), to_string(y));
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(slot_row, Role::kIn);
    f(addend, Role::kIn);
    f(y, Role::kOut);
  }
};

template <>
std::span<const Implementation<RoutePlanArgs>> implementations<RoutePlanArgs>();
template <>
std::span<const Implementation<CombineArgs>> implementations<CombineArgs>();

}  // namespace rondo

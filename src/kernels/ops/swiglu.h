// SwiGLU (Shazeer, 2020): y = silu(gate) * up, for experts times the row's routing weight.
#pragma once

#include "kernels/op.h"

namespace rondo {

// x[r] = [gate | up]. With `weights`, y[r] is multiplied by weights[row_slot[r]] before the down
// projection: the same mathematics as after it, with less memory. With `offsets` only rows before
// its last entry are read and written.
struct SwigluArgs {
  static constexpr const char* kName = "swiglu";
  static constexpr double kTolerance = 2e-6;

  View x;         // [R, 2I]
  View y;         // [R, I]
  View weights;   // [slots] or null
  View row_slot;  // i32 [R], with weights
  View offsets;   // i32 [E + 1] or null

  void check() const {
    RONDO_RULE(x.rank == 2 && y.rank == 2 && x.rows() == y.rows() && x.cols() == 2 * y.cols(),
               "x {}, y {}", to_string(x), to_string(y));
    RONDO_RULE(!weights || (row_slot && row_slot.rank == 1 && row_slot.shape[0] == x.rows()),
               "row_slot {} for x {}", to_string(row_slot), to_string(x));
    RONDO_RULE(!offsets || offsets.rank == 1, "offsets {}", to_string(offsets));
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(y, offsets ? Role::kInOut : Role::kOut);
    f(weights, Role::kIn);
    f(row_slot, Role::kIn);
    f(offsets, Role::kIn);
  }
};

// dx from dy; with weights also d_row_weight[r] = sum_i dy[r, i] silu(gate) up. `y`, where given,
// receives the forward result again, which the weight gradient of the down projection needs: so
// forward need not keep it.
struct SwigluBackwardArgs {
  static constexpr const char* kName = "swiglu_backward";
  static constexpr double kTolerance = 4e-6;

  View x;             // [R, 2I]
  View dy;            // [R, I]
  View dx;            // [R, 2I]; may be x
  View y;             // [R, I] or null; may be dy
  View weights;       // [slots] or null
  View row_slot;      // i32 [R], with weights
  View d_row_weight;  // [R], with weights
  View offsets;       // i32 [E + 1] or null

  void check() const {
    RONDO_RULE(x.rank == 2 && same_shape(x, dx) && dy.rank == 2 && dy.rows() == x.rows() &&
                   x.cols() == 2 * dy.cols() && (!y || same_shape(y, dy)),
               "x {}, dy {}, dx {}, y {}", to_string(x), to_string(dy), to_string(dx),
               to_string(y));
    RONDO_RULE(!weights || (row_slot && d_row_weight && row_slot.shape[0] == x.rows() &&
                            d_row_weight.shape[0] == x.rows()),
               "row_slot {}, d_row_weight {}", to_string(row_slot), to_string(d_row_weight));
  }
  template <class F>
  void views(F&& f) {
    const Role out = offsets ? Role::kInOut : Role::kOut;
    f(x, Role::kIn);
    f(dy, Role::kIn);
    f(dx, out);
    f(y, out);
    f(weights, Role::kIn);
    f(row_slot, Role::kIn);
    f(d_row_weight, out);
    f(offsets, Role::kIn);
  }
};

template <>
std::span<const Implementation<SwigluArgs>> implementations<SwigluArgs>();
template <>
std::span<const Implementation<SwigluBackwardArgs>> implementations<SwigluBackwardArgs>();

}  // namespace rondo

// Rotary position embedding (Su et al., 2021): pairs of features turn by pos * inv_freq.
#pragma once

#include "kernels/op.h"

namespace rondo {

// cos and sin of every token's angles, once a micro-batch. The angle is formed in double, so that
// position a million keeps its digits. `scale` multiplies both (YaRN's ratio of mscales).
struct RopeTableArgs {
  static constexpr const char* kName = "rope_table";
  static constexpr double kTolerance = 1e-6;

  View places;    // i32 [T, 4]
  View inv_freq;  // f64 [d/2], always
  View cos, sin;  // [T, d/2]
  float scale = 1;

  void check() const {
    RONDO_RULE(places.rank == 2 && places.cols() == 4 && inv_freq.rank == 1,
               "places {}, inv_freq {}", to_string(places), to_string(inv_freq));
    RONDO_RULE(cos.rank == 2 && cos.rows() == places.rows() && cos.cols() == inv_freq.shape[0] &&
                   same_shape(cos, sin),
               "cos {}, sin {}", to_string(cos), to_string(sin));
  }
  template <class F>
  void views(F&& f) {
    f(places, Role::kIn);
    f(inv_freq, Role::kIn);
    f(cos, Role::kOut);
    f(sin, Role::kOut);
  }
};

// y = x turned by the table. Pairs: (2i, 2i+1) when `interleave`, else (i, i + d/2); the result
// keeps the pairs where they are. y may be x. Forward with Hx = 1 < Hy copies the one turned head
// to every head of y (MLA's shared key). `inverse` turns back, which is the gradient; then Hy = 1 <
// Hx sums the heads of x, in order.
struct RopeArgs {
  static constexpr const char* kName = "rope";
  static constexpr double kTolerance = 1e-6;

  View x;         // [T, Hx, d]
  View y;         // [T, Hy, d]
  View cos, sin;  // [T, d/2]
  bool interleave = false;
  bool inverse = false;

  void check() const {
    RONDO_RULE(x.rank == 3 && y.rank == 3 && x.shape[0] == y.shape[0] && x.shape[2] == y.shape[2],
               "x {}, y {}", to_string(x), to_string(y));
    RONDO_RULE(x.shape[1] == y.shape[1] || (inverse ? y.shape[1] == 1 : x.shape[1] == 1),
               "x {}, y {}", to_string(x), to_string(y));
    RONDO_RULE(cos.rank == 2 && cos.rows() == x.shape[0] && cos.cols() * 2 == x.shape[2] &&
                   same_shape(cos, sin),
               "cos {} for x {}", to_string(cos), to_string(x));
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(y, Role::kOut);
    f(cos, Role::kIn);
    f(sin, Role::kIn);
  }
};

template <>
std::span<const Implementation<RopeTableArgs>> implementations<RopeTableArgs>();
template <>
std::span<const Implementation<RopeArgs>> implementations<RopeArgs>();

}  // namespace rondo

// A tensor to one number, in a fixed order: blocks of elements by threads, their sums in order.
#pragma once

#include "kernels/op.h"

namespace rondo {

// y[0] += scale * sum of x (kSum) or of x^2 (kSumSquares), or the count of elements that are NaN or
// infinite (kNonfinite). y is f64 always: a million small terms lose nothing.
struct ReduceArgs {
  static constexpr const char* kName = "reduce";
  static constexpr double kTolerance = 1e-6;

  enum class Kind : uint8_t { kSum, kSumSquares, kNonfinite };
  View x;  // dense
  View y;  // f64 [1], added to
  Kind kind = Kind::kSum;
  double scale = 1;

  void check() const {
    RONDO_RULE(x.is_dense() && y.elements() == 1 && y.dtype == DType::kF64, "x {}, y {}",
               to_string(x), to_string(y));
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(y, Role::kInOut);
  }
};

template <>
std::span<const Implementation<ReduceArgs>> implementations<ReduceArgs>();

}  // namespace rondo

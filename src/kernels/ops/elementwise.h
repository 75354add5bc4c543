// Small operations on whole tensors: fill, scaled sums, dropout.
#pragma once

#include "base/random.h"
#include "kernels/op.h"

namespace rondo {

// y = value, of f32, f64, i32, i64 or u8 (integers: the truncated value).
struct FillArgs {
  static constexpr const char* kName = "fill";
  static constexpr double kTolerance = 0;
  View y;  // rank 1 to 3, rows may have gaps
  float value = 0;

  void check() const {
    RONDO_RULE(y.rank >= 1 && y.rank <= 3, "y {}", to_string(y));
    RONDO_RULE(y.dtype == DType::kF32 || y.dtype == DType::kF64 || y.dtype == DType::kI32 ||
                   y.dtype == DType::kI64 || y.dtype == DType::kU8,
               "y {}", to_string(y));
  }
  template <class F>
  void views(F&& f) {
    f(y, Role::kOut);
  }
};

// y = alpha x + beta y; beta = 0 does not read y. Gaps between rows are allowed on both sides.
struct AxpbyArgs {
  static constexpr const char* kName = "axpby";
  static constexpr double kTolerance = 1e-6;
  View x, y;  // same shape, rank 1 to 3
  float alpha = 1, beta = 0;

  void check() const {
    RONDO_RULE(same_shape(x, y) && x.rank >= 1 && x.rank <= 3, "x {}, y {}", to_string(x),
               to_string(y));
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(y, beta == 0 ? Role::kOut : Role::kInOut);
  }
};

// What seeds one use of dropout: run seed, step, layer, and which place in the layer.
inline uint64_t dropout_seed(uint64_t seed, int64_t step, int64_t layer, int64_t site) {
  const auto words = philox({seed, RandomUse::kDropout}, static_cast<uint64_t>(step),
                            static_cast<uint64_t>(layer * 16 + site));
  return (static_cast<uint64_t>(words[0]) << 32) | words[1];
}

// y = x / (1 - p) where kept, else 0. Feature f of a token is kept when word f % 4 of
// philox({seed, kDropout}, sample << 32 | offset, f / 4) is, as uniform01, >= p. The same call on
// dy is the gradient. y may be x.
struct DropoutArgs {
  static constexpr const char* kName = "dropout";
  static constexpr double kTolerance = 1e-6;
  View x, y;    // [T, H]
  View places;  // i32 [T, 4]
  float p = 0;
  uint64_t seed = 0;

  void check() const {
    RONDO_RULE(x.rank == 2 && same_shape(x, y) && places.rank == 2 && places.rows() == x.rows() &&
                   places.cols() == 4,
               "x {}, y {}, places {}", to_string(x), to_string(y), to_string(places));
    RONDO_RULE(p >= 0 && p < 1, "p {}", p);
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(y, Role::kOut);
    f(places, Role::kIn);
  }
};

template <>
std::span<const Implementation<FillArgs>> implementations<FillArgs>();
template <>
std::span<const Implementation<AxpbyArgs>> implementations<AxpbyArgs>();
template <>
std::span<const Implementation<DropoutArgs>> implementations<DropoutArgs>();

}  // namespace rondo

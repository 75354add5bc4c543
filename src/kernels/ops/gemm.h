// c[M, N] (+)= product of a and b: dense matrices.
#pragma once

#include "kernels/op.h"

namespace rondo {

struct GemmArgs {
  static constexpr const char* kName = "gemm";
  static constexpr double kTolerance = 2e-6;

  enum class Form : uint8_t {
    kNT,  // a [M, K], b [N, K]: activations by a weight [out, in]
    kNN,  // a [M, K], b [K, N]: gradients by a weight
    kTN,  // a [K, M], b [K, N]: gradients by activations, summed over K tokens
  };

  View a, b;
  View c;  // [M, N]; must not overlap a or b
  Form form = Form::kNT;
  bool accumulate = false;  // add to c; otherwise c is not read

  int64_t m() const { return c.rows(); }
  int64_t n() const { return c.cols(); }
  int64_t k() const { return form == Form::kTN ? a.rows() : a.cols(); }

  void check() const {
    RONDO_RULE(a.rank == 2 && b.rank == 2 && c.rank == 2, "matrices wanted");
    RONDO_RULE((form == Form::kTN ? a.cols() : a.rows()) == m(), "a {} against c {}", to_string(a),
               to_string(c));
    RONDO_RULE((form == Form::kNT ? b.rows() : b.cols()) == n(), "b {} against c {}", to_string(b),
               to_string(c));
    RONDO_RULE((form == Form::kNT ? b.cols() : b.rows()) == k(), "a {} against b {}", to_string(a),
               to_string(b));
  }
  template <class F>
  void views(F&& f) {
    f(a, Role::kIn);
    f(b, Role::kIn);
    f(c, accumulate ? Role::kInOut : Role::kOut);
  }
};

template <>
std::span<const Implementation<GemmArgs>> implementations<GemmArgs>();

}  // namespace rondo

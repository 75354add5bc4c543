// Root-mean-square norm (Zhang & Sennrich, 2019): y = x / sqrt(mean(x^2) + eps) * w, row by row.
#pragma once

#include "kernels/op.h"

namespace rondo {

// With `residual` the row that is normed is x + residual, and `sum` receives it.
struct RmsNormArgs {
  static constexpr const char* kName = "rms_norm";
  static constexpr double kTolerance = 1e-6;

  View x;         // [T, H]
  View residual;  // [T, H] or null
  View sum;       // [T, H], null exactly when residual is; may be x or residual
  View w;         // [H]
  View y;         // [T, H]; may be x when there is no residual
  View inv_rms;   // [T]: 1 / sqrt(mean + eps), for backward
  float eps = 1e-6f;

  void check() const {
    RONDO_RULE(x.rank == 2 && same_shape(x, y) && w.rank == 1 && w.shape[0] == x.cols(),
               "x {}, w {}, y {}", to_string(x), to_string(w), to_string(y));
    RONDO_RULE(inv_rms.rank == 1 && inv_rms.shape[0] == x.rows(), "inv_rms {}", to_string(inv_rms));
    RONDO_RULE(bool(residual) == bool(sum), "residual and sum go together");
    RONDO_RULE(!residual || (same_shape(x, residual) && same_shape(x, sum)), "residual {}, sum {}",
               to_string(residual), to_string(sum));
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(residual, Role::kIn);
    f(sum, Role::kOut);
    f(w, Role::kIn);
    f(y, Role::kOut);
    f(inv_rms, Role::kOut);
  }
};

// With n = x * inv_rms and g = dy * w: dx = (g - n mean(g n)) * inv_rms, dw += sum over rows dy n.
// The sum runs over fixed blocks of rows, added in order.
struct RmsNormBackwardArgs {
  static constexpr const char* kName = "rms_norm_backward";
  static constexpr double kTolerance = 4e-6;

  View x;        // [T, H], what was normed (`sum` where there was a residual)
  View w;        // [H]
  View inv_rms;  // [T]
  View dy;       // [T, H]
  View dx;       // [T, H]; may be dy unless accumulated
  View dw;       // [H], added to
  bool accumulate_dx = false;

  void check() const {
    RONDO_RULE(x.rank == 2 && same_shape(x, dy) && same_shape(x, dx), "x {}, dy {}, dx {}",
               to_string(x), to_string(dy), to_string(dx));
    RONDO_RULE(w.rank == 1 && w.shape[0] == x.cols() && same_shape(w, dw) && inv_rms.rank == 1 &&
                   inv_rms.shape[0] == x.rows(),
               "w {}, dw {}, inv_rms {}", to_string(w), to_string(dw), to_string(inv_rms));
  }
  template <class F>
  void views(F&& f) {
    f(x, Role::kIn);
    f(w, Role::kIn);
    f(inv_rms, Role::kIn);
    f(dy, Role::kIn);
    f(dx, accumulate_dx ? Role::kInOut : Role::kOut);
    f(dw, Role::kInOut);
  }
};

template <>
std::span<const Implementation<RmsNormArgs>> implementations<RmsNormArgs>();
template <>
std::span<const Implementation<RmsNormBackwardArgs>> implementations<RmsNormBackwardArgs>();

}  // namespace rondo

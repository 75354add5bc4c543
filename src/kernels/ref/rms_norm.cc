#include "kernels/ref/rms_norm.h"

#include <cmath>
#include <vector>

#include "kernels/ref/floating.h"

namespace rondo::ref {

const char* rms_norm(const RmsNormArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.x.cols();
    const T* w = args.w.as<T>();
    for (int64_t r = 0; r < args.x.rows(); ++r) {
      const T* x = row<T>(args.x, r);
      if (args.residual) {
        const T* residual = row<T>(args.residual, r);
        T* sum = row<T>(args.sum, r);
        for (int64_t i = 0; i < n; ++i) sum[i] = x[i] + residual[i];
        x = sum;
      }
      double squares = 0;
      for (int64_t i = 0; i < n; ++i) squares += double(x[i]) * x[i];
      const double inv = 1 / std::sqrt(squares / static_cast<double>(n) + args.eps);
      args.inv_rms.as<T>()[r] = static_cast<T>(inv);
      T* y = row<T>(args.y, r);
      for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(x[i] * inv * w[i]);
    }
  });
}

const char* rms_norm_backward(const RmsNormBackwardArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.x.cols();
    const T* w = args.w.as<T>();
    std::vector<double> dw(n, 0);
    for (int64_t r = 0; r < args.x.rows(); ++r) {
      const T* x = row<T>(args.x, r);
      const T* dy = row<T>(args.dy, r);
      T* dx = row<T>(args.dx, r);
      const double inv = args.inv_rms.as<T>()[r];
      double dot = 0;
      for (int64_t i = 0; i < n; ++i) dot += double(dy[i]) * w[i] * x[i] * inv;
      const double mean = dot / static_cast<double>(n);
      for (int64_t i = 0; i < n; ++i) {
        const double normed = x[i] * inv;
        dw[i] += dy[i] * normed;
        const double d = (double(dy[i]) * w[i] - normed * mean) * inv;
        dx[i] = static_cast<T>(args.accumulate_dx ? dx[i] + d : d);
      }
    }
    for (int64_t i = 0; i < n; ++i) args.dw.as<T>()[i] += static_cast<T>(dw[i]);
  });
}

}  // namespace rondo::ref

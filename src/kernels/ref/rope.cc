#include "kernels/ref/rope.h"

#include <cmath>
#include <vector>

#include "kernels/ref/floating.h"

namespace rondo::ref {

const char* rope_table(const RopeTableArgs& args, KernelEnv&) {
  return by_dtype(args.cos, [&](auto zero) {
    using T = decltype(zero);
    const double* inv_freq = args.inv_freq.as<double>();
    for (int64_t t = 0; t < args.places.rows(); ++t) {
      const double pos = row<int32_t>(args.places, t)[3];
      for (int64_t i = 0; i < args.cos.cols(); ++i) {
        row<T>(args.cos, t)[i] = static_cast<T>(std::cos(pos * inv_freq[i]) * args.scale);
        row<T>(args.sin, t)[i] = static_cast<T>(std::sin(pos * inv_freq[i]) * args.scale);
      }
    }
  });
}

const char* rope(const RopeArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const int64_t d = args.x.shape[2], half = d / 2;
    const int64_t step = args.interleave ? 2 : 1, partner = args.interleave ? 1 : half;
    const int64_t heads = std::max(args.x.shape[1], args.y.shape[1]);
    std::vector<double> sums(d);
    for (int64_t t = 0; t < args.x.shape[0]; ++t) {
      const T* cos = row<T>(args.cos, t);
      const T* sin = row<T>(args.sin, t);
      const bool gather = args.y.shape[1] < args.x.shape[1];
      std::fill(sums.begin(), sums.end(), 0);
      std::vector<T> shared;  // a single head may be overwritten by its own first copy
      if (args.x.shape[1] == 1) shared.assign(row<T>(args.x, t), row<T>(args.x, t) + d);
      for (int64_t h = 0; h < heads; ++h) {
        const T* x = shared.empty() ? row<T>(args.x, t) + h * args.x.stride[1] : shared.data();
        T* y = row<T>(args.y, t) + (gather ? 0 : h * args.y.stride[1]);
        for (int64_t i = 0; i < half; ++i) {
          const int64_t at = i * step, other = at + partner;
          const double c = cos[i], s = args.inverse ? -double(sin[i]) : double(sin[i]);
          const double a = x[at], b = x[other];
          const double ya = a * c - b * s, yb = b * c + a * s;
          if (gather) {
            sums[at] += ya;
            sums[other] += yb;
          } else {
            y[at] = static_cast<T>(ya);
            y[other] = static_cast<T>(yb);
          }
        }
      }
      if (gather)
        for (int64_t i = 0; i < d; ++i) row<T>(args.y, t)[i] = static_cast<T>(sums[i]);
    }
  });
}

}  // namespace rondo::ref

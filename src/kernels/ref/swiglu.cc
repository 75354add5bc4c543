#include "kernels/ref/swiglu.h"

#include <cmath>

#include "kernels/ref/floating.h"

namespace rondo::ref {
namespace {

int64_t valid_rows(const View& offsets, int64_t rows) {
  return offsets ? offsets.as<int32_t>()[offsets.shape[0] - 1] : rows;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

const char* swiglu(const SwigluArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.y.cols();
    for (int64_t r = 0; r < valid_rows(args.offsets, args.x.rows()); ++r) {
      const T* gate = row<T>(args.x, r);
      const T* up = gate + n;
      const double w = args.weights ? args.weights.as<T>()[args.row_slot.as<int32_t>()[r]] : 1.0;
      for (int64_t i = 0; i < n; ++i)
        row<T>(args.y, r)[i] = static_cast<T>(gate[i] * sigmoid(gate[i]) * up[i] * w);
    }
  });
}

const char* swiglu_backward(const SwigluBackwardArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.dy.cols();
    for (int64_t r = 0; r < valid_rows(args.offsets, args.x.rows()); ++r) {
      const T* x = row<T>(args.x, r);
      const double w = args.weights ? args.weights.as<T>()[args.row_slot.as<int32_t>()[r]] : 1.0;
      double d_weight = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double gate = x[i], up = x[n + i], dy = row<T>(args.dy, r)[i];
        const double s = sigmoid(gate), silu = gate * s;
        d_weight += dy * silu * up;
        row<T>(args.dx, r)[i] = static_cast<T>(dy * w * up * s * (1 + gate * (1 - s)));
        row<T>(args.dx, r)[n + i] = static_cast<T>(dy * w * silu);
        if (args.y) row<T>(args.y, r)[i] = static_cast<T>(silu * up * w);
      }
      if (args.weights) args.d_row_weight.as<T>()[r] = static_cast<T>(d_weight);
    }
  });
}

}  // namespace rondo::ref

#include "kernels/ref/reduce.h"

#include <cmath>

#include "kernels/ref/floating.h"

namespace rondo::ref {

const char* reduce(const ReduceArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const T* x = args.x.as<T>();
    double sum = 0;
    for (int64_t i = 0; i < args.x.elements(); ++i) {
      const double v = x[i];
      switch (args.kind) {
        case ReduceArgs::Kind::kSum:
          sum += v;
          break;
        case ReduceArgs::Kind::kSumSquares:
          sum += v * v;
          break;
        case ReduceArgs::Kind::kNonfinite:
          sum += std::isfinite(v) ? 0 : 1;
          break;
      }
    }
    args.y.as<double>()[0] += args.scale * sum;
  });
}

}  // namespace rondo::ref

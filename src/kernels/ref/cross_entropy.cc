#include "kernels/ref/cross_entropy.h"

#include <cmath>

#include "kernels/ref/floating.h"

namespace rondo::ref {

const char* cross_entropy(const CrossEntropyArgs& args, KernelEnv&) {
  return by_dtype(args.logits, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.logits.cols();
    for (int64_t t = 0; t < args.logits.rows(); ++t) {
      T* x = row<T>(args.logits, t);
      const int32_t label = args.labels.as<int32_t>()[t];
      if (label == kIgnoreLabel) {
        args.loss.as<T>()[t] = 0;
        if (args.gradient) std::fill(x, x + n, T(0));
        continue;
      }
      RONDO_CHECK(label >= 0 && label < n, "cross_entropy: label {} of {}", label, n);
      double top = x[0], sum = 0;
      for (int64_t i = 1; i < n; ++i) top = std::max<double>(top, x[i]);
      for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - top);
      const double lse = top + std::log(sum);
      args.loss.as<T>()[t] = static_cast<T>(lse - x[label]);
      if (!args.gradient) continue;
      for (int64_t i = 0; i < n; ++i)
        x[i] = static_cast<T>((std::exp(x[i] - lse) - (i == label ? 1 : 0)) * args.grad_scale);
    }
  });
}

}  // namespace rondo::ref

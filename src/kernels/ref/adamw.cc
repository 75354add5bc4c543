#include "kernels/ref/adamw.h"

#include <cmath>

#include "kernels/ref/floating.h"

namespace rondo::ref {

const char* adamw(const AdamWArgs& args, KernelEnv&) {
  return by_dtype(args.p, [&](auto zero) {
    using T = decltype(zero);
    const double step = static_cast<double>(args.step);
    const double correction1 = 1 - std::pow(args.beta1, step);
    const double correction2 = std::sqrt(1 - std::pow(args.beta2, step));
    for (int64_t i = 0; i < args.p.elements(); ++i) {
      T &p = args.p.as<T>()[i], &m = args.m.as<T>()[i], &v = args.v.as<T>()[i];
      const double g = args.grad_scale * args.grad.as<T>()[i];
      const double decayed = p * (1 - args.lr * args.weight_decay);
      const double m1 = m + (1 - args.beta1) * (g - m);
      const double v1 = args.beta2 * v + (1 - args.beta2) * g * g;
      m = static_cast<T>(m1);
      v = static_cast<T>(v1);
      p = static_cast<T>(decayed -
                         args.lr / correction1 * m1 / (std::sqrt(v1) / correction2 + args.eps));
    }
  });
}

const char* router_bias(const RouterBiasArgs& args, KernelEnv&) {
  return by_dtype(args.bias, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.counts.shape[0];
    const int64_t* counts = args.counts.as<int64_t>();
    int64_t total = 0;
    for (int64_t e = 0; e < n; ++e) total += counts[e];
    // In integers: a count that is exactly the mean moves nothing.
    for (int64_t e = 0; e < n; ++e) {
      const int64_t above = total - counts[e] * n;
      if (above != 0) args.bias.as<T>()[e] += static_cast<T>(above > 0 ? args.rate : -args.rate);
    }
  });
}

}  // namespace rondo::ref

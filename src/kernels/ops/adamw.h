// AdamW (Loshchilov & Hutter, 2019), as torch.optim.AdamW orders it.
#pragma once

#include "kernels/op.h"

namespace rondo {

// With g = grad_scale * grad and step t counted from 1:
//   p *= 1 - lr weight_decay;  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
struct AdamWArgs {
  static constexpr const char* kName = "adamw";
  static constexpr double kTolerance = 1e-6;

  View p, m, v;  // dense, updated
  View grad;     // as p
  double lr = 0, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0;
  double grad_scale = 1;  // of clipping
  int64_t step = 1;

  void check() const {
    RONDO_RULE(same_shape(p, m) && same_shape(p, v) && same_shape(p, grad) && p.is_dense() &&
                   m.is_dense() && v.is_dense() && grad.is_dense(),
               "p {}, m {}, v {}, grad {}", to_string(p), to_string(m), to_string(v),
               to_string(grad));
    RONDO_RULE(step >= 1, "step {}", step);
  }
  template <class F>
  void views(F&& f) {
    f(p, Role::kInOut);
    f(m, Role::kInOut);
    f(v, Role::kInOut);
    f(grad, Role::kIn);
  }
};

// bias[e] += rate * sign(mean count - count[e]) (DeepSeek-V3's balancing without a loss).
struct RouterBiasArgs {
  static constexpr const char* kName = "router_bias";
  static constexpr double kTolerance = 1e-7;

  View counts;  // i64 [E], of the whole step
  View bias;    // [E], updated
  float rate = 0;

  void check() const {
    RONDO_RULE(counts.rank == 1 && bias.rank == 1 && counts.shape[0] == bias.shape[0],
               "counts {}, bias {}", to_string(counts), to_string(bias));
  }
  template <class F>
  void views(F&& f) {
    f(counts, Role::kIn);
    f(bias, Role::kInOut);
  }
};

template <>
std::span<const Implementation<AdamWArgs>> implementations<AdamWArgs>();
template <>
std::span<const Implementation<RouterBiasArgs>> implementations<RouterBiasArgs>();

}  // namespace rondo

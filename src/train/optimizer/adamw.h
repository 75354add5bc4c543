// The optimizer: AdamW on the flat parameters, in the groups of the parameter table.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace rondo {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  double clip_norm = 1;  // 0: no clipping
};

class Optimizer {
 public:
  // Moments begin at zero, in fp32, laid out as the weights.
  Optimizer(Context& ctx, const Model& model, const AdamWOptions& options);

  // sqrt of the sum of squares over every parameter's gradient, once each. Waits for the device.
  double gradient_norm();
  // What gradients of this norm are multiplied by: min(1, clip / (norm + 1e-6)), as torch clips.
  double clip_scale(double norm) const;
  // `step` counts from 1. Submits only.
  void update(double learning_rate, double grad_scale, int64_t step);
  // bias += rate * sign(mean - count) for every routed layer. Submits only.
  void update_router_bias(double rate);

  View first_moment() const { return m_; }
  View second_moment() const { return v_; }

 private:
  // A stretch of the flat tensors with one rule.
  struct Range {
    int64_t begin, end;
    bool decay;
  };
  Context& ctx_;
  const Model& model_;
  const AdamWOptions options_;
  std::vector<Range> ranges_;
  Tensor m_, v_, sums_;
};

}  // namespace rondo

#include "train/step.h"

#include <algorithm>

#include "train/guard/guard.h"

namespace rondo {
namespace {

// The worst layer's max / mean of tokens an expert.
double expert_load(Context& ctx, const Model& model) {
  std::vector<std::vector<int64_t>> counts;
  for (const Model::ExpertCounts& layer : model.expert_counts()) {
    counts.emplace_back(static_cast<size_t>(layer.counts.elements()));
    copy(*ctx.stream,
         View(counts.back().data(), DType::kI64, Memory::kHost, {layer.counts.elements()}),
         layer.counts);
  }
  ctx.stream->synchronize("train.expert_load");
  double worst = 0;
  for (const std::vector<int64_t>& layer : counts) {
    int64_t sum = 0, most = 0;
    for (const int64_t n : layer) {
      sum += n;
      most = std::max(most, n);
    }
    if (sum > 0)
      worst = std::max(worst, static_cast<double>(most) * static_cast<double>(layer.size()) /
                                  static_cast<double>(sum));
  }
  return worst;
}

}  // namespace

std::vector<Action> plain_schedule(int64_t micro_batches) {
  std::vector<Action> actions;
  for (int64_t i = 0; i < micro_batches; ++i)
    actions.push_back({Action::Kind::kForwardBackward, i});
  for (const Action::Kind kind : {Action::Kind::kReduce, Action::Kind::kGuard,
                                  Action::Kind::kOptimizer, Action::Kind::kRouterBias})
    actions.push_back({kind});
  return actions;
}

StepMetrics run_step(Context& ctx, Model& model, Optimizer& optimizer,
                     const std::vector<Action>& actions, const StepInput& input) {
  model.begin_step(input.counts, input.step);
  StepMetrics metrics;
  metrics.step = input.step;
  metrics.learning_rate = input.learning_rate;
  for (const Action& action : actions) {
    switch (action.kind) {
      case Action::Kind::kForwardBackward:
        model.run(input.micro_batches[static_cast<size_t>(action.micro_batch)]);
        break;
      case Action::Kind::kReduce:
        model.reduce();
        metrics.losses = model.losses();
        metrics.grad_norm = optimizer.gradient_norm();
        metrics.expert_load = expert_load(ctx, model);
        break;
      case Action::Kind::kGuard:
        check_finite(model, input.step, metrics.losses.total, metrics.grad_norm,
                     input.micro_batches);
        break;
      case Action::Kind::kOptimizer:
        optimizer.update(input.learning_rate, optimizer.clip_scale(metrics.grad_norm), input.step);
        break;
      case Action::Kind::kRouterBias:
        optimizer.update_router_bias(input.router_bias_rate);
        break;
    }
  }
  return metrics;
}

}  // namespace rondo

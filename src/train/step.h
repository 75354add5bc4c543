// One training step as a list of actions, and the executor that runs it. Today one stage; pipeline
// schedules are other lists.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "train/metrics/metrics.h"
#include "train/optimizer/adamw.h"

namespace rondo {

struct Action {
  enum class Kind : uint8_t {
    kForwardBackward,  // of one micro-batch
    kReduce,           // losses and gradient norm
    kGuard,            // stop when they are not finite
    kOptimizer,        // clip, AdamW
    kRouterBias,
  };
  Kind kind;
  int64_t micro_batch = 0;
  int64_t stage = 0;
};

std::vector<Action> plain_schedule(int64_t micro_batches);

struct StepInput {
  int64_t step = 1;  // from 1
  double learning_rate = 0, router_bias_rate = 0;
  const std::vector<Batch>& micro_batches;  // of this rank
  const BatchCounts& counts;                // of the step, over all ranks
};

// Runs the actions; fills losses, grad_norm, expert_load. RunFailure when numbers went bad: then
// the weights are those of the step before.
StepMetrics run_step(Context& ctx, Model& model, Optimizer& optimizer,
                     const std::vector<Action>& actions, const StepInput& input);

}  // namespace rondo

#pragma once

#include "kernels/ops/router_loss.h"

namespace rondo::cpu {

const char* router_stats(const RouterStatsArgs& args, KernelEnv& env);
int64_t router_stats_workspace(const RouterStatsArgs& args, int threads);
const char* router_loss(const RouterLossArgs& args, KernelEnv& env);
const char* router_loss_backward(const RouterLossBackwardArgs& args, KernelEnv& env);
int64_t router_loss_backward_workspace(const RouterLossBackwardArgs& args, int threads);

}  // namespace rondo::cpu

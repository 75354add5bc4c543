#pragma once

#include "kernels/ops/router_loss.h"

namespace rondo::ref {

const char* router_stats(const RouterStatsArgs& args, KernelEnv& env);
const char* router_loss(const RouterLossArgs& args, KernelEnv& env);
const char* router_loss_backward(const RouterLossBackwardArgs& args, KernelEnv& env);

}  // namespace rondo::ref

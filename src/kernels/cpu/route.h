#pragma once

#include "kernels/ops/route.h"

namespace rondo::cpu {

const char* route_plan(const RoutePlanArgs& args, KernelEnv& env);
int64_t route_plan_workspace(const RoutePlanArgs& args, int threads);
const char* combine(const CombineArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

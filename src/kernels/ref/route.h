#pragma once

#include "kernels/ops/route.h"

namespace rondo::ref {

const char* route_plan(const RoutePlanArgs& args, KernelEnv& env);
const char* combine(const CombineArgs& args, KernelEnv& env);

}  // namespace rondo::ref

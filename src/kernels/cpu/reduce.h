#pragma once

#include "kernels/ops/reduce.h"

namespace rondo::cpu {

int64_t reduce_workspace(const ReduceArgs& args, int threads);
const char* reduce(const ReduceArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

#pragma once

#include "kernels/ops/reduce.h"

namespace rondo::ref {

const char* reduce(const ReduceArgs& args, KernelEnv& env);

}  // namespace rondo::ref

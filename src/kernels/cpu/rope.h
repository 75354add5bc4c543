#pragma once

#include "kernels/ops/rope.h"

namespace rondo::cpu {

const char* rope_table(const RopeTableArgs& args, KernelEnv& env);
int64_t rope_workspace(const RopeArgs& args, int threads);
const char* rope(const RopeArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

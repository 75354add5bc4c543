#pragma once

#include "kernels/ops/rope.h"

namespace rondo::ref {

const char* rope_table(const RopeTableArgs& args, KernelEnv& env);
const char* rope(const RopeArgs& args, KernelEnv& env);

}  // namespace rondo::ref

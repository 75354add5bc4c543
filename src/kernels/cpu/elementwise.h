#pragma once

#include "kernels/ops/elementwise.h"

namespace rondo::cpu {

const char* fill(const FillArgs& args, KernelEnv& env);
const char* axpby(const AxpbyArgs& args, KernelEnv& env);
const char* dropout(const DropoutArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

#pragma once

#include "kernels/ops/swiglu.h"

namespace rondo::cpu {

const char* swiglu(const SwigluArgs& args, KernelEnv& env);
const char* swiglu_backward(const SwigluBackwardArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

#pragma once

#include "kernels/ops/rms_norm.h"

namespace rondo::ref {

const char* rms_norm(const RmsNormArgs& args, KernelEnv& env);
const char* rms_norm_backward(const RmsNormBackwardArgs& args, KernelEnv& env);

}  // namespace rondo::ref

#pragma once

#include "kernels/ops/rms_norm.h"

namespace rondo::cpu {

const char* rms_norm(const RmsNormArgs& args, KernelEnv& env);
const char* rms_norm_backward(const RmsNormBackwardArgs& args, KernelEnv& env);
int64_t rms_norm_backward_workspace(const RmsNormBackwardArgs& args, int threads);

}  // namespace rondo::cpu

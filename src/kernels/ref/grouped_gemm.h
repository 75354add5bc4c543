#pragma once

#include "kernels/ops/grouped_gemm.h"

namespace rondo::ref {

const char* grouped_gemm(const GroupedGemmArgs& args, KernelEnv& env);
const char* grouped_wgrad(const GroupedWgradArgs& args, KernelEnv& env);

}  // namespace rondo::ref

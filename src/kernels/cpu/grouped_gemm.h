#pragma once

#include "kernels/ops/grouped_gemm.h"

namespace rondo::cpu {

const char* grouped_gemm(const GroupedGemmArgs& args, KernelEnv& env);
int64_t grouped_gemm_workspace(const GroupedGemmArgs& args, int threads);

const char* grouped_wgrad(const GroupedWgradArgs& args, KernelEnv& env);
int64_t grouped_wgrad_workspace(const GroupedWgradArgs& args, int threads);

}  // namespace rondo::cpu

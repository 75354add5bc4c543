#pragma once

#include "kernels/ops/gemm.h"

namespace rondo::cpu {

const char* gemm(const GemmArgs& args, KernelEnv& env);
int64_t gemm_workspace(const GemmArgs& args, int threads);

}  // namespace rondo::cpu

#pragma once

#include "kernels/ops/gemm.h"

namespace rondo::ref {

const char* gemm(const GemmArgs& args, KernelEnv& env);

}  // namespace rondo::ref

#pragma once

#include "kernels/ops/cross_entropy.h"

namespace rondo::cpu {

const char* cross_entropy(const CrossEntropyArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

#pragma once

#include "kernels/ops/cross_entropy.h"

namespace rondo::ref {

const char* cross_entropy(const CrossEntropyArgs& args, KernelEnv& env);

}  // namespace rondo::ref

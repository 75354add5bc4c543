#pragma once

#include "kernels/ops/adamw.h"

namespace rondo::cpu {

const char* adamw(const AdamWArgs& args, KernelEnv& env);
const char* router_bias(const RouterBiasArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

#pragma once

#include "kernels/ops/router.h"

namespace rondo::cpu {

const char* router(const RouterArgs& args, KernelEnv& env);
int64_t router_workspace(const RouterArgs& args, int threads);
const char* router_backward(const RouterBackwardArgs& args, KernelEnv& env);
int64_t router_backward_workspace(const RouterBackwardArgs& args, int threads);

// Floats that a padded row of n takes on any target.
inline int64_t padded_row(int64_t n) {
  return (n + 63) / 64 * 64;
}

}  // namespace rondo::cpu

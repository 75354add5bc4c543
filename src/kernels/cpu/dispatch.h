#pragma once

#include "kernels/ops/dispatch.h"

namespace rondo::cpu {

const char* dispatch_count(const DispatchCountArgs& args, KernelEnv& env);
int64_t dispatch_pack_workspace(const DispatchPackArgs& args, int threads);
const char* dispatch_pack(const DispatchPackArgs& args, KernelEnv& env);
const char* dispatch_unpack(const DispatchUnpackArgs& args, KernelEnv& env);
int64_t return_pack_workspace(const ReturnPackArgs& args, int threads);
const char* return_pack(const ReturnPackArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

#pragma once

#include "kernels/ops/dispatch.h"

namespace rondo::ref {

const char* dispatch_count(const DispatchCountArgs& args, KernelEnv& env);
const char* dispatch_pack(const DispatchPackArgs& args, KernelEnv& env);
const char* dispatch_unpack(const DispatchUnpackArgs& args, KernelEnv& env);
const char* return_pack(const ReturnPackArgs& args, KernelEnv& env);

}  // namespace rondo::ref

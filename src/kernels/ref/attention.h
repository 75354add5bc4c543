#pragma once

#include "kernels/ops/attention.h"

namespace rondo::ref {

const char* attention_block(const AttentionBlockArgs& args, KernelEnv& env);
const char* attention_finish(const AttentionFinishArgs& args, KernelEnv& env);
const char* attention_delta(const AttentionDeltaArgs& args, KernelEnv& env);
const char* attention_backward(const AttentionBackwardArgs& args, KernelEnv& env);

}  // namespace rondo::ref

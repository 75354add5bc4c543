#pragma once

#include "kernels/ops/attention.h"

namespace rondo::cpu {

int64_t attention_block_workspace(const AttentionBlockArgs& args, int threads);
const char* attention_block(const AttentionBlockArgs& args, KernelEnv& env);
const char* attention_finish(const AttentionFinishArgs& args, KernelEnv& env);
const char* attention_delta(const AttentionDeltaArgs& args, KernelEnv& env);
int64_t attention_backward_workspace(const AttentionBackwardArgs& args, int threads);
const char* attention_backward(const AttentionBackwardArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

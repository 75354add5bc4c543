#pragma once

#include "kernels/ops/embedding.h"

namespace rondo::cpu {

const char* embedding(const EmbeddingArgs& args, KernelEnv& env);
const char* embedding_backward(const EmbeddingBackwardArgs& args, KernelEnv& env);

}  // namespace rondo::cpu

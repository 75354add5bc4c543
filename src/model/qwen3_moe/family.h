// Qwen3-MoE (arXiv 2505.09388): grouped queries with normed queries and keys, softmax router.
#pragma once

#include "base/value.h"
#include "model/config.h"
#include "model/parameters.h"

namespace rondo::qwen3_moe {

void read_config(Reader& reader, ModelConfig& config);
void add_parameters(const ModelConfig& config, ParameterTable& table);

}  // namespace rondo::qwen3_moe

#pragma once

#include "model/parameters.h"

namespace rondo::qwen3_moe {

void read(Reader& reader, ModelConfig& config);
void add_layer(const ModelConfig& config, int64_t layer, const std::string& prefix,
               ParameterTable& table);

}  // namespace rondo::qwen3_moe

#pragma once

#include "model/parameters.h"

namespace rondo::deepseek_v3 {

void read(Reader& reader, ModelConfig& config);
void add_layer(const ModelConfig& config, int64_t layer, const std::string& prefix,
               ParameterTable& table);

}  // namespace rondo::deepseek_v3

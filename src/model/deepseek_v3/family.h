// DeepSeek-V3 (arXiv 2412.19437): latent attention, sigmoid router with groups and a bias, shared
// experts, multi-token prediction.
#pragma once

#include "base/value.h"
#include "model/config.h"
#include "model/parameters.h"

namespace rondo::deepseek_v3 {

void read_config(Reader& reader, ModelConfig& config);
void add_parameters(const ModelConfig& config, ParameterTable& table);

}  // namespace rondo::deepseek_v3

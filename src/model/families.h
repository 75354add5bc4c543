// The list of model families: what the rest of the code knows of one. A new family is one folder
// and one line in families.cc.
#pragma once

#include <span>
#include <string_view>

#include "base/value.h"
#include "model/config.h"
#include "model/parameters.h"

namespace rondo {

struct Family {
  const char* model_type;    // in config.json
  const char* architecture;  // in config.json, the causal language model's class
  // Reads the keys that only this family has, and those that all have (read_common_config).
  void (*read_config)(Reader& reader, ModelConfig& config);
  // Adds every row of the table, in the order of the hub.
  void (*add_parameters)(const ModelConfig& config, ParameterTable& table);
};

std::span<const Family> families();
const Family& family_of(const ModelConfig& config);

}  // namespace rondo

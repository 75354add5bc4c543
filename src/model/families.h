// Model families: how a family reads its config.json and which parameters it has. A new one is a
// folder and a line in families.cc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/config.h"

namespace rondo {

class ParameterTable;

struct Family {
  const char* model_type;
  const char* architecture;
  // Fills what is the family's own; the common keys are there already.
  void (*read)(Reader& reader, ModelConfig& config);
  // Rows of a layer's attention and feed-forward parts, names beginning with `prefix`.
  void (*add_layer)(const ModelConfig& config, int64_t layer, const std::string& prefix,
                    ParameterTable& table);
};

std::span<const Family> families();
// InputError with the list of those there are.
const Family& family_of(const std::string& model_type, const std::string& source);

}  // namespace rondo

// Rows that families share.
#pragma once

#include "model/parameters.h"

namespace rondo {

inline Parameter matrix(const std::string& name, int64_t out, int64_t in) {
  return {.name = name, .shape = {out, in}};
}
inline Parameter norm_row(const std::string& name, int64_t width) {
  return {.name = name, .shape = {width}, .init = Parameter::Init::kOnes, .decay = false};
}

// gate_proj and up_proj as one buffer, down_proj.
inline void add_mlp(ParameterTable& table, const std::string& prefix, int64_t width,
                    int64_t inner) {
  table.add_buffer(prefix + ".gate_up", {2 * inner, width},
                   {matrix(prefix + ".gate_proj.weight", inner, width),
                    matrix(prefix + ".up_proj.weight", inner, width)});
  table.add(matrix(prefix + ".down_proj.weight", width, inner));
}

// All experts' gate_proj and up_proj as one buffer, all down_proj as another.
inline void add_experts(ParameterTable& table, const std::string& prefix, int64_t experts,
                        int64_t width, int64_t inner) {
  std::vector<Parameter> gate_up, down;
  for (int64_t e = 0; e < experts; ++e) {
    const std::string name = prefix + ".experts." + std::to_string(e);
    gate_up.push_back(matrix(name + ".gate_proj.weight", inner, width));
    gate_up.push_back(matrix(name + ".up_proj.weight", inner, width));
    down.push_back(matrix(name + ".down_proj.weight", width, inner));
  }
  table.add_buffer(prefix + ".experts.gate_up", {experts, 2 * inner, width}, std::move(gate_up));
  table.add_buffer(prefix + ".experts.down", {experts, width, inner}, std::move(down));
}

}  // namespace rondo

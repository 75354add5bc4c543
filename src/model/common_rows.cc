#include "model/common_rows.h"

#include <fmt/format.h>

namespace rondo {

void add_matrix(ParameterTable& table, const std::string& name, int64_t rows, int64_t cols) {
  table.add({.name = name, .shape = {rows, cols}});
}

void add_norm(ParameterTable& table, const std::string& name, int64_t size) {
  table.add({.name = name, .shape = {size}, .init = Parameter::Init::kOnes, .decay = false});
}

void add_mlp(ParameterTable& table, const std::string& prefix, int64_t hidden,
             int64_t intermediate) {
  table.add_buffer(prefix + ".gate_up", {2 * intermediate, hidden},
                   {{.name = prefix + ".gate_proj.weight", .shape = {intermediate, hidden}},
                    {.name = prefix + ".up_proj.weight", .shape = {intermediate, hidden}}});
  add_matrix(table, prefix + ".down_proj.weight", hidden, intermediate);
}

void add_routed_experts(ParameterTable& table, const std::string& prefix,
                        const ModelConfig& config) {
  const int64_t experts = config.n_routed_experts, hidden = config.hidden_size,
                intermediate = config.moe_intermediate_size;
  add_matrix(table, prefix + ".gate.weight", experts, hidden);
  if (config.router_bias)
    table.add({.name = prefix + ".gate.e_score_correction_bias",
               .shape = {experts},
               .init = Parameter::Init::kZeros,
               .decay = false,
               .trained = false,
               .keep_f32 = true});
  std::vector<Parameter> gate_up, down;
  const auto add = [&](std::vector<Parameter>& rows, const std::string& name, int64_t height,
                       int64_t width) {
    rows.push_back({.name = name, .shape = {height, width}, .expert = true});
  };
  for (int64_t e = table.experts().begin; e < table.experts().end; ++e) {
    const std::string expert = fmt::format("{}.experts.{}", prefix, e);
    add(gate_up, expert + ".gate_proj.weight", intermediate, hidden);
    add(gate_up, expert + ".up_proj.weight", intermediate, hidden);
    add(down, expert + ".down_proj.weight", hidden, intermediate);
  }
  const int64_t held = table.experts().size();
  table.add_buffer(prefix + ".experts.gate_up", {held, 2 * intermediate, hidden},
                   std::move(gate_up));
  table.add_buffer(prefix + ".experts.down", {held, hidden, intermediate}, std::move(down));
}

void add_feed_forward(ParameterTable& table, const std::string& prefix, const ModelConfig& config,
                      int64_t layer) {
  if (!config.is_moe(layer)) {
    add_mlp(table, prefix, config.hidden_size, config.intermediate_size);
    return;
  }
  add_routed_experts(table, prefix, config);
  if (config.n_shared_experts > 0)
    add_mlp(table, prefix + ".shared_experts", config.hidden_size,
            config.moe_intermediate_size * config.n_shared_experts);
}

}  // namespace rondo

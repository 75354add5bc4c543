// Rows of the parameter table that families share. `prefix` ends without a dot.
#pragma once

#include <string>

#include "model/parameters.h"

namespace rondo {

void add_matrix(ParameterTable& table, const std::string& name, int64_t rows, int64_t cols);
void add_norm(ParameterTable& table, const std::string& name, int64_t size);

// gate_proj, up_proj (one buffer "<prefix>.gate_up") and down_proj of a dense MLP.
void add_mlp(ParameterTable& table, const std::string& prefix, int64_t hidden,
             int64_t intermediate);
// "<prefix>.gate.weight", its bias where the family has one, and "<prefix>.experts.E.*" in the
// buffers "<prefix>.experts.gate_up" and "<prefix>.experts.down".
void add_routed_experts(ParameterTable& table, const std::string& prefix,
                        const ModelConfig& config);
// The MLP of this layer: dense, or routed with shared experts beside.
void add_feed_forward(ParameterTable& table, const std::string& prefix, const ModelConfig& config,
                      int64_t layer);

}  // namespace rondo

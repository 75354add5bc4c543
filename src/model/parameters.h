// The parameter table: the only list of a model's parameters. Loading, saving, initialising,
// optimizer and norm walk it.
//
// All weights lie in one flat fp32 tensor; gradients and optimizer states are tensors of the same
// layout: first what every rank holds, then the routed experts, of which a rank may hold some. A
// row is one hub tensor: a dense range of the flat tensor. Rows that kernels want as one matrix lie
// side by side in a named buffer:
//   "<mlp>.gate_up"          [2 I, H]     gate_proj, up_proj (dense MLP, shared experts)
//   "<mlp>.experts.gate_up"  [E, 2 I, H]  each expert's gate_proj, up_proj; E are those held here
//   "<mlp>.experts.down"     [E, H, I]    each expert's down_proj
// Every other row is a buffer of its own, by its hub name. <mlp> is "model.layers.N.mlp" or
// "model.layers.N.mlp.shared_experts".
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/config.h"
#include "tensor/view.h"

namespace rondo {

struct Parameter {
  std::string name;            // on the hub
  std::vector<int64_t> shape;  // on the hub
  int64_t offset = 0;          // elements, in the flat tensor
  enum class Init : uint8_t { kNormal, kOnes, kZeros } init = Init::kNormal;
  bool decay = true;      // weight decay: matrices yes, norms and biases no
  bool trained = true;    // false: e_score_correction_bias, which its own rule updates
  bool keep_f32 = false;  // in a checkpoint, whatever the dtype of the rest
  bool expert = false;    // of a routed expert
  bool alias = false;     // another name of an earlier row (same offset): MTP's embedding and head.
                          // Read if there (must be equal), written, never counted twice
  int64_t elements() const;
};

// Which routed experts of every layer a rank holds: [begin, end).
struct ExpertRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Those of rank `rank` out of `ranks` that share the experts.
ExpertRange held_experts(const ModelConfig& config, int ranks, int rank);

class ParameterTable {
 public:
  // Rows in the order of the hub: embedding, layers, norm, head, MTP layers after the last layer.
  static ParameterTable build(const ModelConfig& config);
  // Without the rows of other experts than these.
  static ParameterTable build(const ModelConfig& config, const ExpertRange& experts);

  const std::vector<Parameter>& rows() const { return rows_; }
  int64_t flat_elements() const { return flat_elements_; }  // with alignment gaps (always zero)
  int64_t expert_begin() const { return expert_begin_; }    // elements before are not of experts
  const ExpertRange& experts() const { return experts_; }
  int64_t parameters() const;  // each counted once
  const Parameter* find(const std::string& name) const;
  // The part of `flat` (f32 or other, [flat_elements]) that a buffer or a row covers, in its shape.
  View view(const View& flat, const std::string& name) const;
  View view(const View& flat, const Parameter& row) const;

  // For families: what build() calls. Buffers are aligned to 64 bytes.
  void add(Parameter row);  // a buffer of its own
  // Rows side by side under one buffer name of this shape; the rows' sizes must fill it.
  void add_buffer(const std::string& name, std::vector<int64_t> shape, std::vector<Parameter> rows);
  void add_alias(Parameter row, const std::string& of);

 private:
  struct Buffer {
    int64_t offset;
    std::vector<int64_t> shape;
    bool expert;
  };
  void join_regions();
  std::vector<Parameter> rows_;
  std::unordered_map<std::string, Buffer> buffers_;  // by buffer name and by row name
  std::unordered_map<std::string, size_t> index_;
  ExpertRange experts_;
  // While rows are added each region counts from 0; join_regions() puts the experts behind the
  // rest.
  int64_t region_[2] = {0, 0};
  int64_t flat_elements_ = 0, expert_begin_ = 0;
};

// Copies the rows that both tables have from one flat array to the other.
void copy_rows(const ParameterTable& from, const std::vector<float>& values,
               const ParameterTable& to, std::vector<float>& out);

// Normal(0, initializer_range), ones or zeros by row, on the host; philox keyed by the seed, the
// row's name and the element's index: one row's values do not depend on the others.
std::vector<float> initial_values(const ParameterTable& table, const ModelConfig& config,
                                  uint64_t seed);

}  // namespace rondo

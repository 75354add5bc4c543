// What a model is: the keys of the hub's config.json that change its mathematics.
//
// Read by families (one folder each); needs no device header, so that the planner can use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/value.h"

namespace rondo {

// YaRN (Peng et al., arXiv 2309.00071), as transformers reads it; factor = 1 is none.
struct RopeScaling {
  double factor = 1, beta_fast = 32, beta_slow = 1;
  int64_t original_max_position_embeddings = 0;
  double mscale = 0, mscale_all_dim = 0;  // 0: not given
  double attention_factor = 0;            // 0: not given, then derived
  bool truncate = true;
};

struct ModelConfig {
  std::string model_type;    // "deepseek_v3", "qwen3_moe"
  std::string architecture;  // "DeepseekV3ForCausalLM"
  Value json;                // as read: written back with a checkpoint

  int64_t vocab_size = 0, hidden_size = 0, num_hidden_layers = 0, max_position_embeddings = 0;
  double rms_norm_eps = 1e-6, initializer_range = 0.02;
  bool tie_word_embeddings = false;

  // Attention. kMla: DeepSeek-V2's latent attention; kGqa: grouped queries with q/k norm.
  enum class Attention : uint8_t { kMla, kGqa };
  Attention attention = Attention::kMla;
  int64_t num_attention_heads = 0, num_key_value_heads = 0;
  int64_t head_dim = 0;                                                // kGqa
  int64_t q_lora_rank = 0, kv_lora_rank = 0;                           // q_lora_rank 0: null
  int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;  // kMla
  int64_t sliding_window = 0;                                          // 0: none
  double attention_dropout = 0;
  double rope_theta = 10000;
  bool rope_interleave = false;
  RopeScaling rope_scaling;

  // Feed-forward: dense, or routed experts with shared ones beside them.
  std::vector<uint8_t> moe_layer;  // [num_hidden_layers + num_nextn_predict_layers]: 1 where routed
  int64_t intermediate_size = 0, moe_intermediate_size = 0;
  int64_t n_routed_experts = 0, n_shared_experts = 0, num_experts_per_tok = 0;
  int64_t n_group = 1, topk_group = 1;
  bool sigmoid_scores = true;  // else softmax
  bool router_bias = false;    // has e_score_correction_bias
  bool norm_topk_prob = true;
  double routed_scaling_factor = 1;

  int64_t num_nextn_predict_layers = 0;  // MTP depths

  int64_t layers() const { return num_hidden_layers + num_nextn_predict_layers; }
  bool is_moe(int64_t layer) const { return moe_layer[static_cast<size_t>(layer)] != 0; }
  int64_t qk_head_dim() const {
    return attention == Attention::kMla ? qk_nope_head_dim + qk_rope_head_dim : head_dim;
  }
  int64_t value_head_dim() const { return attention == Attention::kMla ? v_head_dim : head_dim; }
  int64_t rope_dim() const { return attention == Attention::kMla ? qk_rope_head_dim : head_dim; }
};

// Refused by name, with what would be right: missing and ill-typed keys, values out of range, keys
// that change the mathematics and are not supported. Keys that do not change it are ignored from a
// listed set; any other key is refused. `warnings` receives what is accepted but should be said
// (num_experts_per_tok = 1 with norm_topk_prob).
ModelConfig read_model_config(const Value& json, const std::string& source,
                              std::vector<std::string>& warnings);
ModelConfig load_model_config(const std::string& folder, std::vector<std::string>& warnings);

// Frequencies of RoPE [rope_dim / 2], YaRN's correction in them.
std::vector<double> rope_inv_freq(const ModelConfig& config);
// What multiplies cos and sin: YaRN's ratio of mscale to mscale_all_dim, or attention_factor.
double rope_scale(const ModelConfig& config);
// 1 / sqrt(qk_head_dim), with YaRN times (0.1 mscale_all_dim ln(factor) + 1)^2 (DeepSeek).
double softmax_scale(const ModelConfig& config);

}  // namespace rondo

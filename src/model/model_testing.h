// For tests of this layer: whole configurations as the hub has them, small ones, and messages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/config.h"

namespace rondo {

// deepseek-ai/DeepSeek-V3's config.json without quantization_config.
inline constexpr const char* kDeepSeekV3 = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config",
    "AutoModel": "modeling_deepseek.DeepseekV3Model",
    "AutoModelForCausalLM": "modeling_deepseek.DeepseekV3ForCausalLM"},
  "aux_loss_alpha": 0.001, "bos_token_id": 0, "eos_token_id": 1, "ep_size": 1,
  "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "initializer_range": 0.02,
  "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840,
  "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8,
  "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true,
  "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
  "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "pretraining_tp": 1,
  "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
  "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
    "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"},
  "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "seq_aux": true,
  "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
  "torch_dtype": "bfloat16", "transformers_version": "4.33.1", "use_cache": true,
  "v_head_dim": 128, "vocab_size": 129280})";

// Qwen/Qwen3-30B-A3B's config.json.
inline constexpr const char* kQwen3Moe = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
  "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
  "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [],
  "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true,
  "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
  "num_hidden_layers": 48, "num_key_value_heads": 4, "output_router_logits": false,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0,
  "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
  "use_sliding_window": false, "vocab_size": 151936})";

// One dense and one routed layer, then one MTP layer.
inline constexpr const char* kTinyDeepSeek = R"({
  "model_type": "deepseek_v3", "vocab_size": 11, "hidden_size": 6, "intermediate_size": 5,
  "moe_intermediate_size": 3, "num_hidden_layers": 2, "num_attention_heads": 2,
  "n_shared_experts": 2, "n_routed_experts": 4, "routed_scaling_factor": 1.5, "kv_lora_rank": 5,
  "q_lora_rank": 4, "qk_rope_head_dim": 2, "v_head_dim": 3, "qk_nope_head_dim": 4, "n_group": 2,
  "topk_group": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "norm_topk_prob": true,
  "max_position_embeddings": 64, "num_nextn_predict_layers": 1})";

inline constexpr const char* kTinyQwen = R"({
  "model_type": "qwen3_moe", "vocab_size": 11, "hidden_size": 8, "intermediate_size": 5,
  "moe_intermediate_size": 3, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "num_local_experts": 3, "num_experts_per_tok": 2,
  "norm_topk_prob": false, "max_position_embeddings": 64, "mlp_only_layers": [0]})";

inline ModelConfig read_config(const Value& json, std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> ignored;
  return read_model_config(json, "c.json", warnings ? *warnings : ignored);
}

// The text, with some keys set to other values (a JSON object; null is a value too).
inline ModelConfig read_config(const char* text, const char* changes = "{}",
                               std::vector<std::string>* warnings = nullptr) {
  Value json = parse_json(text, "c.json");
  const Value changed = parse_json(changes, "changes");
  for (const auto& [key, value] : *changed.as_object()) json.set(key, value);
  return read_config(json, warnings);
}

inline std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace rondo

#include <fmt/format.h>

#include "model/common_config.h"
#include "model/deepseek_v3/family.h"

namespace rondo::deepseek_v3 {
namespace {

// transformers derives these two and writes them down; a file may repeat them, not change them.
void check_derived(Reader& reader, const char* key, int64_t derived, const char* from) {
  if (!reader.has(key)) return;
  if (const int64_t given = reader.integer(key, {}, 0, INT64_MAX); given != derived)
    reader.fail(key, fmt::format("is {}; it must be {} ({})", given, derived, from));
}

}  // namespace

void read_config(Reader& reader, ModelConfig& config) {
  config.attention = ModelConfig::Attention::kMla;
  read_common_config(reader, config);

  // null is no low rank; leaving the key out is not, for transformers has another default.
  if (!reader.raw("q_lora_rank"))
    reader.fail("q_lora_rank", "is missing; it must be an integer, or null for none");
  config.q_lora_rank = reader.integer("q_lora_rank", 0, 1, kMaxWidth);
  config.kv_lora_rank = reader.integer("kv_lora_rank", {}, 1, kMaxWidth);
  config.qk_nope_head_dim = reader.integer("qk_nope_head_dim", {}, 1, kMaxHeads);
  config.qk_rope_head_dim = reader.integer("qk_rope_head_dim", {}, 2, kMaxHeads);
  config.v_head_dim = reader.integer("v_head_dim", {}, 1, kMaxHeads);
  check_derived(reader, "qk_head_dim", config.qk_head_dim(), "qk_nope_head_dim + qk_rope_head_dim");
  check_derived(reader, "head_dim", config.qk_rope_head_dim, "qk_rope_head_dim");
  config.num_key_value_heads = config.num_attention_heads;
  check_derived(reader, "num_key_value_heads", config.num_attention_heads, "num_attention_heads");
  config.rope_interleave = flag(reader, "rope_interleave", true);

  const int64_t dense = reader.integer("first_k_dense_replace", {}, 0, kMaxLayers);
  config.n_routed_experts =
      integer_by_names(reader, "n_routed_experts", "num_local_experts", {}, 0, kMaxExperts);
  config.moe_intermediate_size = reader.integer("moe_intermediate_size", {}, 1, kMaxInner);
  const Value* shared = reader.raw("n_shared_experts");
  config.n_shared_experts =
      shared && shared->is_null() ? 0 : reader.integer("n_shared_experts", {}, 0, kMaxShared);
  config.num_experts_per_tok = reader.integer("num_experts_per_tok", {}, 1, kMaxExperts);
  config.n_group = reader.integer("n_group", {}, 1, kMaxExperts);
  config.topk_group = reader.integer("topk_group", {}, 1, kMaxExperts);
  config.routed_scaling_factor = reader.number("routed_scaling_factor", {}, 0, 1e6);
  only_number(reader, "moe_layer_freq", 1);
  reader.choice("topk_method", "noaux_tc", {"noaux_tc"});
  reader.choice("scoring_func", "sigmoid", {"sigmoid"});
  config.sigmoid_scores = true;
  config.router_bias = true;

  config.num_nextn_predict_layers =
      integer_by_names(reader, "num_nextn_predict_layers", "num_mtp_layers", 0, 0, kMaxMtp);
  for (int64_t layer = 0; layer < config.layers(); ++layer)
    config.moe_layer.push_back(config.n_routed_experts > 0 && layer >= dense);
  if (config.n_routed_experts > 0) check_experts(reader, config);
}

}  // namespace rondo::deepseek_v3

// Qwen3-MoE: grouped queries with a norm on queries and keys, softmax router, no shared experts.
#include "model/qwen3_moe/qwen3_moe.h"

#include <algorithm>

#include "model/rows.h"

namespace rondo::qwen3_moe {
namespace {
constexpr int64_t kMost = int64_t{1} << 24;
}  // namespace

void read(Reader& r, ModelConfig& c) {
  c.attention = ModelConfig::Attention::kGqa;
  c.num_key_value_heads = r.integer("num_key_value_heads", 4, 1, kMost);
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    r.fail("num_key_value_heads", "is " + std::to_string(c.num_key_value_heads) +
                                      "; it must divide num_attention_heads, " +
                                      std::to_string(c.num_attention_heads));
  c.head_dim = r.has("head_dim") ? r.integer("head_dim", {}, 1, kMost)
                                 : c.hidden_size / c.num_attention_heads;
  if (r.boolean("use_sliding_window", false))
    c.sliding_window = r.integer("sliding_window", {}, 1, int64_t{1} << 40);
  else
    r.ignore("sliding_window");
  r.ignore("max_window_layers");

  c.n_routed_experts =
      r.integer(r.has("num_local_experts") ? "num_local_experts" : "num_experts", {}, 1, 65536);
  c.num_experts_per_tok = r.integer("num_experts_per_tok", {}, 1, 65536);
  c.moe_intermediate_size = r.integer("moe_intermediate_size", {}, 1, kMost);
  c.intermediate_size = r.integer("intermediate_size", {}, 1, kMost);
  c.norm_topk_prob = r.boolean("norm_topk_prob", false);
  c.sigmoid_scores = false;
  const int64_t every = r.integer("decoder_sparse_step", 1, 1, kMost);
  const std::vector<double> dense = r.numbers("mlp_only_layers");
  c.moe_layer.assign(static_cast<size_t>(c.layers()), 0);
  for (int64_t i = 0; i < c.layers(); ++i)
    c.moe_layer[static_cast<size_t>(i)] =
        (i + 1) % every == 0 &&
        std::find(dense.begin(), dense.end(), static_cast<double>(i)) == dense.end();
  for (const char* key : {"router_aux_loss_coef", "output_router_logits"}) r.ignore(key);
}

void add_layer(const ModelConfig& c, int64_t layer, const std::string& prefix,
               ParameterTable& table) {
  const std::string attention = prefix + ".self_attn", mlp = prefix + ".mlp";
  const int64_t width = c.hidden_size;
  table.add(norm_row(prefix + ".input_layernorm.weight", width));
  table.add(matrix(attention + ".q_proj.weight", c.num_attention_heads * c.head_dim, width));
  table.add(matrix(attention + ".k_proj.weight", c.num_key_value_heads * c.head_dim, width));
  table.add(matrix(attention + ".v_proj.weight", c.num_key_value_heads * c.head_dim, width));
  table.add(matrix(attention + ".o_proj.weight", width, c.num_attention_heads * c.head_dim));
  table.add(norm_row(attention + ".q_norm.weight", c.head_dim));
  table.add(norm_row(attention + ".k_norm.weight", c.head_dim));
  table.add(norm_row(prefix + ".post_attention_layernorm.weight", width));
  if (!c.is_moe(layer)) return add_mlp(table, mlp, width, c.intermediate_size);
  table.add(matrix(mlp + ".gate.weight", c.n_routed_experts, width));
  add_experts(table, mlp, c.n_routed_experts, width, c.moe_intermediate_size);
}

}  // namespace rondo::qwen3_moe

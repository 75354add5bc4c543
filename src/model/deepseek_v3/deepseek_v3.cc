// DeepSeek-V3 (arXiv 2412.19437), with the hub's keys and names.
#include "model/deepseek_v3/deepseek_v3.h"

#include "model/rows.h"

namespace rondo::deepseek_v3 {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;

// A key that only this value of is computed here.
void only(Reader& r, const char* key, const char* supported) {
  const std::string value = r.text(key, supported);
  if (value != supported)
    r.fail(key, "\"" + value + "\" is not supported; it must be \"" + supported + "\"");
}

}  // namespace

void read(Reader& r, ModelConfig& c) {
  c.attention = ModelConfig::Attention::kMla;
  c.q_lora_rank = r.has("q_lora_rank") ? r.integer("q_lora_rank", {}, 1, kMost) : 0;
  c.kv_lora_rank = r.integer("kv_lora_rank", {}, 1, kMost);
  c.qk_nope_head_dim = r.integer("qk_nope_head_dim", {}, 1, kMost);
  c.qk_rope_head_dim = r.integer("qk_rope_head_dim", {}, 1, kMost);
  c.v_head_dim = r.integer("v_head_dim", {}, 1, kMost);
  c.rope_interleave = r.boolean("rope_interleave", true);
  c.num_key_value_heads = r.integer("num_key_value_heads", c.num_attention_heads, 1, kMost);
  if (c.num_key_value_heads != c.num_attention_heads)
    r.fail("num_key_value_heads", "is " + std::to_string(c.num_key_value_heads) +
                                      "; latent attention wants num_attention_heads, " +
                                      std::to_string(c.num_attention_heads));
  r.ignore("qk_head_dim");  // derived
  r.ignore("head_dim");

  c.num_nextn_predict_layers = r.integer("num_nextn_predict_layers", 0, 0, 16);
  const int64_t dense = r.integer("first_k_dense_replace", 3, 0, kMost);
  c.n_routed_experts = r.has("n_routed_experts") ? r.integer("n_routed_experts", {}, 1, 65536) : 0;
  c.moe_layer.assign(static_cast<size_t>(c.layers()), 0);
  for (int64_t i = dense; i < c.layers(); ++i)
    c.moe_layer[static_cast<size_t>(i)] = c.n_routed_experts > 0;
  c.intermediate_size = r.integer("intermediate_size", {}, 1, kMost);
  if (c.n_routed_experts > 0)
    c.moe_intermediate_size = r.integer("moe_intermediate_size", {}, 1, kMost);
  c.n_shared_experts = r.has("n_shared_experts") ? r.integer("n_shared_experts", {}, 0, 4096) : 0;
  c.num_experts_per_tok =
      r.has("num_experts_per_tok") ? r.integer("num_experts_per_tok", {}, 1, 65536) : 0;
  c.n_group = r.has("n_group") ? r.integer("n_group", {}, 1, 65536) : 1;
  c.topk_group = r.has("topk_group") ? r.integer("topk_group", {}, 1, 65536) : 1;
  c.norm_topk_prob = r.boolean("norm_topk_prob", true);
  c.routed_scaling_factor = r.number("routed_scaling_factor", 1.0, 1e-6, 1e6);
  c.sigmoid_scores = true;
  c.router_bias = true;
  only(r, "scoring_func", "sigmoid");
  only(r, "topk_method", "noaux_tc");
  if (r.integer("moe_layer_freq", 1, 0, kMost) != 1)
    r.fail("moe_layer_freq", "is not supported; it must be 1");
  for (const char* key : {"aux_loss_alpha", "seq_aux", "ep_size", "router_aux_loss_coef"})
    r.ignore(key);  // of training elsewhere: Rondo's are in the run configuration
}

void add_layer(const ModelConfig& c, int64_t layer, const std::string& prefix,
               ParameterTable& table) {
  const std::string attention = prefix + ".self_attn", mlp = prefix + ".mlp";
  const int64_t width = c.hidden_size, heads = c.num_attention_heads;
  table.add(norm_row(prefix + ".input_layernorm.weight", width));
  if (c.q_lora_rank > 0) {
    table.add(matrix(attention + ".q_a_proj.weight", c.q_lora_rank, width));
    table.add(norm_row(attention + ".q_a_layernorm.weight", c.q_lora_rank));
    table.add(matrix(attention + ".q_b_proj.weight", heads * c.qk_head_dim(), c.q_lora_rank));
  } else {
    table.add(matrix(attention + ".q_proj.weight", heads * c.qk_head_dim(), width));
  }
  table.add(
      matrix(attention + ".kv_a_proj_with_mqa.weight", c.kv_lora_rank + c.qk_rope_head_dim, width));
  table.add(norm_row(attention + ".kv_a_layernorm.weight", c.kv_lora_rank));
  table.add(matrix(attention + ".kv_b_proj.weight", heads * (c.qk_nope_head_dim + c.v_head_dim),
                   c.kv_lora_rank));
  table.add(matrix(attention + ".o_proj.weight", width, heads * c.v_head_dim));
  table.add(norm_row(prefix + ".post_attention_layernorm.weight", width));
  if (!c.is_moe(layer)) return add_mlp(table, mlp, width, c.intermediate_size);
  table.add(matrix(mlp + ".gate.weight", c.n_routed_experts, width));
  table.add({.name = mlp + ".gate.e_score_correction_bias",
             .shape = {c.n_routed_experts},
             .init = Parameter::Init::kZeros,
             .decay = false,
             .trained = false,
             .keep_f32 = true});
  add_experts(table, mlp, c.n_routed_experts, width, c.moe_intermediate_size);
  if (c.n_shared_experts > 0)
    add_mlp(table, mlp + ".shared_experts", width, c.moe_intermediate_size * c.n_shared_experts);
}

}  // namespace rondo::deepseek_v3

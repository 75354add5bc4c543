#include <fmt/format.h>

#include "model/common_rows.h"
#include "model/deepseek_v3/family.h"

namespace rondo::deepseek_v3 {
namespace {

void add_attention(ParameterTable& table, const std::string& prefix, const ModelConfig& config) {
  const int64_t hidden = config.hidden_size, heads = config.num_attention_heads;
  const int64_t query = heads * config.qk_head_dim();
  if (config.q_lora_rank == 0) {
    add_matrix(table, prefix + ".q_proj.weight", query, hidden);
  } else {
    add_matrix(table, prefix + ".q_a_proj.weight", config.q_lora_rank, hidden);
    add_norm(table, prefix + ".q_a_layernorm.weight", config.q_lora_rank);
    add_matrix(table, prefix + ".q_b_proj.weight", query, config.q_lora_rank);
  }
  add_matrix(table, prefix + ".kv_a_proj_with_mqa.weight",
             config.kv_lora_rank + config.qk_rope_head_dim, hidden);
  add_norm(table, prefix + ".kv_a_layernorm.weight", config.kv_lora_rank);
  add_matrix(table, prefix + ".kv_b_proj.weight",
             heads * (config.qk_nope_head_dim + config.v_head_dim), config.kv_lora_rank);
  add_matrix(table, prefix + ".o_proj.weight", hidden, heads * config.v_head_dim);
}

void add_layer(ParameterTable& table, const std::string& prefix, const ModelConfig& config,
               int64_t layer) {
  add_norm(table, prefix + ".input_layernorm.weight", config.hidden_size);
  add_attention(table, prefix + ".self_attn", config);
  add_norm(table, prefix + ".post_attention_layernorm.weight", config.hidden_size);
  add_feed_forward(table, prefix + ".mlp", config, layer);
}

}  // namespace

void add_parameters(const ModelConfig& config, ParameterTable& table) {
  const int64_t hidden = config.hidden_size, vocab = config.vocab_size;
  const std::string embedding = "model.embed_tokens.weight";
  const std::string head = config.tie_word_embeddings ? embedding : "lm_head.weight";
  add_matrix(table, embedding, vocab, hidden);
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer)
    add_layer(table, fmt::format("model.layers.{}", layer), config, layer);
  add_norm(table, "model.norm.weight", hidden);
  if (!config.tie_word_embeddings) add_matrix(table, head, vocab, hidden);

  for (int64_t layer = config.num_hidden_layers; layer < config.layers(); ++layer) {
    const std::string prefix = fmt::format("model.layers.{}", layer);
    table.add_alias({.name = prefix + ".embed_tokens.weight", .shape = {vocab, hidden}}, embedding);
    add_norm(table, prefix + ".enorm.weight", hidden);
    add_norm(table, prefix + ".hnorm.weight", hidden);
    add_matrix(table, prefix + ".eh_proj.weight", hidden, 2 * hidden);
    add_layer(table, prefix, config, layer);
    add_norm(table, prefix + ".shared_head.norm.weight", hidden);
    table.add_alias({.name = prefix + ".shared_head.head.weight", .shape = {vocab, hidden}}, head);
  }
}

}  // namespace rondo::deepseek_v3

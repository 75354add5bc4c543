#include <fmt/format.h>

#include "model/common_rows.h"
#include "model/qwen3_moe/family.h"

namespace rondo::qwen3_moe {

void add_parameters(const ModelConfig& config, ParameterTable& table) {
  const int64_t hidden = config.hidden_size, vocab = config.vocab_size, dim = config.head_dim;
  add_matrix(table, "model.embed_tokens.weight", vocab, hidden);
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}", layer);
    const std::string attention = prefix + ".self_attn";
    add_norm(table, prefix + ".input_layernorm.weight", hidden);
    add_matrix(table, attention + ".q_proj.weight", config.num_attention_heads * dim, hidden);
    add_matrix(table, attention + ".k_proj.weight", config.num_key_value_heads * dim, hidden);
    add_matrix(table, attention + ".v_proj.weight", config.num_key_value_heads * dim, hidden);
    add_matrix(table, attention + ".o_proj.weight", hidden, config.num_attention_heads * dim);
    add_norm(table, attention + ".q_norm.weight", dim);
    add_norm(table, attention + ".k_norm.weight", dim);
    add_norm(table, prefix + ".post_attention_layernorm.weight", hidden);
    add_feed_forward(table, prefix + ".mlp", config, layer);
  }
  add_norm(table, "model.norm.weight", hidden);
  if (!config.tie_word_embeddings) add_matrix(table, "lm_head.weight", vocab, hidden);
}

}  // namespace rondo::qwen3_moe

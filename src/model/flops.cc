#include "model/flops.h"

#include <algorithm>

namespace rondo {
namespace {

// Multiply-adds of one token in the matrices of a layer's attention.
double attention_weights(const ModelConfig& config) {
  const double hidden = static_cast<double>(config.hidden_size);
  const double heads = static_cast<double>(config.num_attention_heads);
  const double query = heads * static_cast<double>(config.qk_head_dim());
  const double output = heads * static_cast<double>(config.value_head_dim()) * hidden;
  if (config.attention == ModelConfig::Attention::kGqa)
    return hidden * query + output +
           hidden * static_cast<double>(2 * config.num_key_value_heads * config.head_dim);
  const double q_rank = static_cast<double>(config.q_lora_rank);
  const double kv_rank = static_cast<double>(config.kv_lora_rank);
  return (q_rank == 0 ? hidden * query : q_rank * (hidden + query)) + output +
         hidden * (kv_rank + static_cast<double>(config.qk_rope_head_dim)) +
         kv_rank * heads * static_cast<double>(config.qk_nope_head_dim + config.v_head_dim);
}

// The same of its feed-forward.
double feed_forward_weights(const ModelConfig& config, int64_t layer) {
  const double hidden = static_cast<double>(config.hidden_size);
  if (!config.is_moe(layer)) return 3 * hidden * static_cast<double>(config.intermediate_size);
  const int64_t active = config.num_experts_per_tok + config.n_shared_experts;
  return 3 * hidden * static_cast<double>(active * config.moe_intermediate_size) +
         hidden * static_cast<double>(config.n_routed_experts);
}

}  // namespace

double visible_pairs(const std::vector<int64_t>& document_lengths, int64_t window) {
  double pairs = 0;
  for (const int64_t length : document_lengths) {
    const double reach = static_cast<double>(window > 0 ? std::min(window, length) : length);
    // The first `reach` tokens see 1, 2, ..., the rest `reach` each.
    pairs += reach * (reach + 1) / 2 + (static_cast<double>(length) - reach) * reach;
  }
  return pairs;
}

double forward_flops(const ModelConfig& config, double tokens, double pairs, bool mtp) {
  const double hidden = static_cast<double>(config.hidden_size);
  const double head = hidden * static_cast<double>(config.vocab_size);
  const double scores = static_cast<double>(config.num_attention_heads) *
                        static_cast<double>(config.qk_head_dim() + config.value_head_dim());
  double weights = head;
  const int64_t layers = mtp ? config.layers() : config.num_hidden_layers;
  for (int64_t layer = 0; layer < layers; ++layer) {
    weights += attention_weights(config) + feed_forward_weights(config, layer);
    if (layer >= config.num_hidden_layers) weights += 2 * hidden * hidden + head;
  }
  return 2 * (tokens * weights + pairs * scores * static_cast<double>(layers));
}

}  // namespace rondo

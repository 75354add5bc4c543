#include "model/flops.h"

namespace rondo {

double visible_pairs(const std::vector<int64_t>& document_lengths, int64_t window) {
  double pairs = 0;
  for (const int64_t length : document_lengths) {
    const double n = static_cast<double>(length), w = static_cast<double>(window);
    pairs += n * (n + 1) / 2;
    if (window > 0 && length > window) pairs -= (n - w) * (n - w + 1) / 2;
  }
  return pairs;
}

double forward_flops(const ModelConfig& c, double tokens, double pairs, bool mtp) {
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  const double width = d(c.hidden_size), heads = d(c.num_attention_heads);
  double attention = 0;  // weights that a token meets
  if (c.attention == ModelConfig::Attention::kMla) {
    const double q = heads * d(c.qk_head_dim());
    attention = c.q_lora_rank > 0 ? d(c.q_lora_rank) * (width + q) : width * q;
    attention += width * d(c.kv_lora_rank + c.qk_rope_head_dim);
    attention += d(c.kv_lora_rank) * heads * d(c.qk_nope_head_dim + c.v_head_dim);
    attention += heads * d(c.v_head_dim) * width;
  } else {
    attention = width * d(c.head_dim) * (2 * heads + 2 * d(c.num_key_value_heads));
  }
  const double pair = 2 * heads * d(c.qk_head_dim() + c.value_head_dim());
  const int64_t layers = mtp ? c.layers() : c.num_hidden_layers;
  double flops = 0;
  for (int64_t i = 0; i < layers; ++i) {
    double weights = attention;
    if (c.is_moe(i))
      weights += width * d(c.n_routed_experts) + 3 * width * d(c.moe_intermediate_size) *
                                                     d(c.num_experts_per_tok + c.n_shared_experts);
    else
      weights += 3 * width * d(c.intermediate_size);
    if (i >= c.num_hidden_layers) weights += 2 * width * width + width * d(c.vocab_size);
    flops += 2 * weights * tokens + pair * pairs;
  }
  return flops + 2 * width * d(c.vocab_size) * tokens;
}

}  // namespace rondo

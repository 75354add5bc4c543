#include <fmt/format.h>

#include <algorithm>

#include "model/common_config.h"
#include "model/qwen3_moe/family.h"

namespace rondo::qwen3_moe {
namespace {

void read_window(Reader& reader, ModelConfig& config) {
  const bool used = reader.boolean("use_sliding_window", false);
  const Value* window = reader.raw("sliding_window");  // may stand there unused
  const int64_t first = reader.integer("max_window_layers", 0, 0, INT64_MAX);
  if (!used) return;
  if (!window) reader.fail("sliding_window", "is missing; use_sliding_window is true");
  config.sliding_window = reader.integer("sliding_window", {}, 1, int64_t{1} << 30);
  if (first != 0)
    reader.fail("max_window_layers",
                fmt::format("is {}; a window in some layers only is not supported: 0 gives it to "
                            "every layer",
                            first));
}

void read_moe_layers(Reader& reader, ModelConfig& config) {
  const int64_t step = reader.integer("decoder_sparse_step", 1, 1, kMaxLayers);
  const std::vector<double> dense = reader.numbers("mlp_only_layers");
  for (const double layer : dense)
    if (layer != static_cast<double>(static_cast<int32_t>(std::clamp(layer, -1e9, 1e9))) ||
        layer < 0 || layer >= static_cast<double>(config.num_hidden_layers))
      reader.fail("mlp_only_layers",
                  fmt::format("holds {}; layers are 0 to {}", layer, config.num_hidden_layers - 1));
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const bool only_mlp =
        std::find(dense.begin(), dense.end(), static_cast<double>(layer)) != dense.end();
    config.moe_layer.push_back(!only_mlp && config.n_routed_experts > 0 && (layer + 1) % step == 0);
  }
}

}  // namespace

void read_config(Reader& reader, ModelConfig& config) {
  config.attention = ModelConfig::Attention::kGqa;
  read_common_config(reader, config);

  config.num_key_value_heads = reader.integer("num_key_value_heads", {}, 1, kMaxHeads);
  if (config.num_attention_heads % config.num_key_value_heads != 0)
    reader.fail("num_key_value_heads",
                fmt::format("is {}; it must divide num_attention_heads ({})",
                            config.num_key_value_heads, config.num_attention_heads));
  if (!reader.has("head_dim") && config.hidden_size % config.num_attention_heads != 0)
    reader.fail("num_attention_heads",
                fmt::format("is {}; without head_dim it must divide hidden_size ({})",
                            config.num_attention_heads, config.hidden_size));
  config.head_dim =
      reader.integer("head_dim", config.hidden_size / config.num_attention_heads, 1, kMaxHeads);
  read_window(reader, config);

  config.n_routed_experts =
      integer_by_names(reader, "num_experts", "num_local_experts", {}, 0, kMaxExperts);
  config.moe_intermediate_size = reader.integer("moe_intermediate_size", {}, 1, kMaxInner);
  config.num_experts_per_tok = reader.integer("num_experts_per_tok", {}, 1, kMaxExperts);
  config.sigmoid_scores = false;
  read_moe_layers(reader, config);
  if (config.n_routed_experts > 0) check_experts(reader, config);
}

}  // namespace rondo::qwen3_moe

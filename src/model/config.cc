#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/file.h"
#include "model/families.h"

namespace rondo {
namespace {

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

// The feature pair that makes this many turns over the original context.
double correction_dim(const ModelConfig& config, double turns) {
  const double length = static_cast<double>(config.rope_scaling.original_max_position_embeddings);
  return static_cast<double>(config.rope_dim()) *
         std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(config.rope_theta));
}

}  // namespace

ModelConfig read_model_config(const Value& json, const std::string& source,
                              std::vector<std::string>& warnings) {
  Reader reader(json, source);
  std::vector<std::string> types;
  for (const Family& family : families()) types.push_back(family.model_type);
  ModelConfig config;
  config.json = json;
  config.model_type = reader.choice("model_type", {}, types);
  const Family& family = family_of(config);
  config.architecture = family.architecture;
  const std::vector<std::string> architectures = reader.texts("architectures");
  if (!architectures.empty() && architectures != std::vector<std::string>{family.architecture})
    reader.fail("architectures", fmt::format("is {}; of {} only {} is supported", architectures[0],
                                             family.model_type, family.architecture));
  family.read_config(reader, config);
  reader.finish();
  if (config.rope_dim() % 2 != 0)
    reader.fail(config.attention == ModelConfig::Attention::kMla ? "qk_rope_head_dim" : "head_dim",
                fmt::format("is {}; RoPE needs an even number", config.rope_dim()));
  const bool routed = std::count(config.moe_layer.begin(), config.moe_layer.end(), 1) > 0;
  if (routed && config.num_experts_per_tok == 1 && config.norm_topk_prob)
    warnings.push_back(fmt::format(
        "{}: num_experts_per_tok is 1 and norm_topk_prob is true: every routing weight is the same "
        "constant, so that the loss gives the router no gradient",
        source));
  return config;
}

ModelConfig load_model_config(const std::string& folder, std::vector<std::string>& warnings) {
  const std::string path = (fs::path(folder) / "config.json").string();
  return read_model_config(parse_json(read_file(path), path), path, warnings);
}

std::vector<double> rope_inv_freq(const ModelConfig& config) {
  const RopeScaling& yarn = config.rope_scaling;
  const double dim = static_cast<double>(config.rope_dim());
  std::vector<double> out(static_cast<size_t>(config.rope_dim() / 2));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = std::pow(config.rope_theta, -2 * static_cast<double>(i) / dim);
  if (yarn.factor == 1) return out;

  // Pairs before `low` turn often and keep their frequency, pairs after `high` are slowed down by
  // the factor, those between go over linearly.
  double low = correction_dim(config, yarn.beta_fast),
         high = correction_dim(config, yarn.beta_slow);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < out.size(); ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    out[i] = out[i] / yarn.factor * slowed + out[i] * (1 - slowed);
  }
  return out;
}

double rope_scale(const ModelConfig& config) {
  const RopeScaling& yarn = config.rope_scaling;
  if (yarn.attention_factor != 0) return yarn.attention_factor;
  if (yarn.mscale != 0 && yarn.mscale_all_dim != 0)
    return yarn_mscale(yarn.factor, yarn.mscale) / yarn_mscale(yarn.factor, yarn.mscale_all_dim);
  return yarn_mscale(yarn.factor, 1);
}

double softmax_scale(const ModelConfig& config) {
  double scale = 1 / std::sqrt(static_cast<double>(config.qk_head_dim()));
  // Only latent attention does this; with grouped queries transformers leaves the scale alone.
  const RopeScaling& yarn = config.rope_scaling;
  if (config.attention == ModelConfig::Attention::kMla && yarn.mscale_all_dim != 0)
    scale *= std::pow(yarn_mscale(yarn.factor, yarn.mscale_all_dim), 2);
  return scale;
}

}  // namespace rondo

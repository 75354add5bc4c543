#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/file.h"
#include "model/families.h"

namespace rondo {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;

// They change no result here: bookkeeping of other programs, generation, initialisation elsewhere.
constexpr const char* kIgnored[] = {
    "architectures",
    "auto_map",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "dtype",
    "torch_dtype",
    "transformers_version",
    "use_cache",
    "_name_or_path",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "id2label",
    "label2id",
    "problem_type",
    "is_encoder_decoder",
    "chunk_size_feed_forward",
    "attn_implementation",
    "_attn_implementation",
    "layer_types",
    "num_labels",
    "use_return_dict",
    "tokenizer_class",
    "finetuning_task",
    "pruned_heads",
    "is_decoder",
    "add_cross_attention",
    "cross_attention_hidden_size",
    "torchscript",
    "prefix",
};

bool refused_unless(Reader& r, const char* key, bool wanted) {
  if (r.boolean(key, wanted) != wanted)
    r.fail(key, std::string(wanted ? "false" : "true") + " is not supported; it must be " +
                    (wanted ? "true" : "false"));
  return true;
}

void read_rope(Reader& r, ModelConfig& c) {
  const bool newer = r.has("rope_parameters");
  c.rope_theta = r.number("rope_theta", 10000.0, 1, 1e12);
  if (newer && r.has("rope_scaling"))
    r.fail("rope_scaling", "and rope_parameters are both given; keep one");
  Reader s = r.section(newer ? "rope_parameters" : "rope_scaling");
  if (newer) c.rope_theta = s.number("rope_theta", c.rope_theta, 1, 1e12);
  const std::string old_type = s.text("type", "default");
  const std::string type = s.choice("rope_type", old_type, {"default", "yarn"});
  if (type == "default") {
    // Other keys would want another type.
    s.ignore("rope_theta");
    s.finish();
    return;
  }
  if (type != "yarn")
    s.fail("type", "\"" + type + "\" is not supported; it must be default or yarn");
  RopeScaling& y = c.rope_scaling;
  y.original_max_position_embeddings =
      s.integer("original_max_position_embeddings", c.max_position_embeddings, 1, int64_t{1} << 40);
  y.factor = s.has("factor") ? s.number("factor", {}, 1, 1e6)
                             : static_cast<double>(c.max_position_embeddings) /
                                   static_cast<double>(y.original_max_position_embeddings);
  y.beta_fast = s.number("beta_fast", 32.0, 1e-6, 1e6);
  y.beta_slow = s.number("beta_slow", 1.0, 1e-6, 1e6);
  y.mscale = s.has("mscale") ? s.number("mscale", {}, 0, 1e3) : 0;
  y.mscale_all_dim = s.has("mscale_all_dim") ? s.number("mscale_all_dim", {}, 0, 1e3) : 0;
  y.attention_factor = s.has("attention_factor") ? s.number("attention_factor", {}, 0, 1e3) : 0;
  y.truncate = s.boolean("truncate", true);
  s.ignore("rope_theta");
  s.finish();
}

void validate(Reader& r, const ModelConfig& c, std::vector<std::string>& warnings) {
  if (c.rope_dim() % 2 != 0)
    r.fail(c.attention == ModelConfig::Attention::kMla ? "qk_rope_head_dim" : "head_dim",
           "is " + std::to_string(c.rope_dim()) + "; RoPE turns pairs, so it must be even");
  bool routed = false;
  for (const uint8_t moe : c.moe_layer) routed = routed || moe;
  if (!routed) return;
  if (c.num_experts_per_tok < 1) r.fail("num_experts_per_tok", "is missing");
  if (c.n_routed_experts % c.n_group != 0)
    r.fail("n_group", "is " + std::to_string(c.n_group) + "; it must divide n_routed_experts, " +
                          std::to_string(c.n_routed_experts));
  if (c.topk_group > c.n_group)
    r.fail("topk_group", "is " + std::to_string(c.topk_group) + "; it must be at most n_group, " +
                             std::to_string(c.n_group));
  if (c.n_group > 1 && c.n_routed_experts / c.n_group < 2)
    r.fail("n_group",
           "is " + std::to_string(c.n_group) +
               "; a group's score is the sum of its two best experts, so each group needs two");
  const int64_t left = c.n_routed_experts / c.n_group * c.topk_group;
  if (c.num_experts_per_tok > left)
    r.fail("num_experts_per_tok", "is " + std::to_string(c.num_experts_per_tok) + "; only " +
                                      std::to_string(left) + " experts are left after groups");
  if (c.num_experts_per_tok == 1 && c.norm_topk_prob)
    warnings.push_back(r.source() +
                       ": num_experts_per_tok = 1 with norm_topk_prob makes every weight 1, so the "
                       "router gets no gradient; norm_topk_prob = false would give it one");
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

}  // namespace

ModelConfig read_model_config(const Value& json, const std::string& source,
                              std::vector<std::string>& warnings) {
  if (!json.as_object()) fail_input("{}: an object is wanted, not {}", source, json.kind());
  Reader r(json, source);
  ModelConfig c;
  c.json = json;
  c.model_type = r.text("model_type", {});
  const Family& family = family_of(c.model_type, source);
  c.architecture = family.architecture;
  c.vocab_size = r.integer("vocab_size", {}, 1, int64_t{1} << 30);
  c.hidden_size = r.integer("hidden_size", {}, 1, kMost);
  c.num_hidden_layers = r.integer("num_hidden_layers", {}, 1, 4096);
  c.max_position_embeddings = r.integer("max_position_embeddings", {}, 1, int64_t{1} << 40);
  c.num_attention_heads = r.integer("num_attention_heads", {}, 1, 65536);
  c.rms_norm_eps = r.number("rms_norm_eps", 1e-6, 0, 1);
  c.initializer_range = r.number("initializer_range", 0.02, 0, 10);
  c.tie_word_embeddings = r.boolean("tie_word_embeddings", false);
  c.attention_dropout = r.number("attention_dropout", 0.0, 0, 0.999);
  const std::string act = r.text("hidden_act", "silu");
  if (act != "silu") r.fail("hidden_act", "\"" + act + "\" is not supported; it must be \"silu\"");
  refused_unless(r, "attention_bias", false);
  if (r.integer("pretraining_tp", 1, 1, kMost) != 1)
    r.fail("pretraining_tp", "is not supported; it must be 1");
  if (r.has("quantization_config"))
    r.fail("quantization_config", "is not supported; convert the weights to BF16 or F32 first");
  read_rope(r, c);
  family.read(r, c);
  for (const char* key : kIgnored) r.ignore(key);
  validate(r, c, warnings);
  r.finish();
  return c;
}

ModelConfig load_model_config(const std::string& folder, std::vector<std::string>& warnings) {
  const std::string path = folder + "/config.json";
  return read_model_config(parse_json(read_file(path), path), path, warnings);
}

std::vector<double> rope_inv_freq(const ModelConfig& c) {
  const int64_t dim = c.rope_dim();
  const RopeScaling& y = c.rope_scaling;
  std::vector<double> out(static_cast<size_t>(dim / 2));
  // Where the ramp between the frequencies kept and those stretched begins and ends: the dimension
  // that turns `rotations` times within the original context.
  const auto correction = [&](double rotations) {
    return static_cast<double>(dim) *
           std::log(static_cast<double>(y.original_max_position_embeddings) /
                    (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(c.rope_theta));
  };
  double low = 0, high = 0;
  if (y.original_max_position_embeddings > 0) {
    low = correction(y.beta_fast);
    high = correction(y.beta_slow);
    if (y.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(dim - 1));
    if (low == high) high += 0.001;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const double plain =
        std::pow(c.rope_theta, -2 * static_cast<double>(i) / static_cast<double>(dim));
    out[i] = plain;
    if (y.original_max_position_embeddings == 0) continue;
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    out[i] = plain / y.factor * ramp + plain * (1 - ramp);
  }
  return out;
}

double rope_scale(const ModelConfig& c) {
  const RopeScaling& y = c.rope_scaling;
  if (y.original_max_position_embeddings == 0) return 1;
  if (y.attention_factor > 0) return y.attention_factor;
  if (y.mscale > 0 && y.mscale_all_dim > 0)
    return yarn_mscale(y.factor, y.mscale) / yarn_mscale(y.factor, y.mscale_all_dim);
  return yarn_mscale(y.factor, 1);
}

double softmax_scale(const ModelConfig& c) {
  const double scale = 1 / std::sqrt(static_cast<double>(c.qk_head_dim()));
  const RopeScaling& y = c.rope_scaling;
  if (c.attention != ModelConfig::Attention::kMla || y.mscale_all_dim == 0) return scale;
  const double m = yarn_mscale(y.factor, y.mscale_all_dim);
  return scale * m * m;
}

}  // namespace rondo

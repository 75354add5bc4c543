#include "model/common_config.h"

#include <fmt/format.h>

namespace rondo {
namespace {

// Keys of config.json that do not change the mathematics of the model: bookkeeping of libraries,
// what generation and a training run decide elsewhere, and layouts over machines.
constexpr const char* kIgnored[] = {
    "_name_or_path",
    "_attn_implementation",
    "_commit_hash",
    "auto_map",
    "aux_loss_alpha",
    "bos_token_id",
    "chunk_size_feed_forward",
    "dtype",
    "eos_token_id",
    "ep_size",
    "id2label",
    "is_encoder_decoder",
    "label2id",
    "num_labels",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "problem_type",
    "return_dict",
    "router_aux_loss_coef",
    "seq_aux",
    "tokenizer_class",
    "torch_dtype",
    "transformers_version",
    "use_cache",
};

void read_yarn(Reader& section, ModelConfig& config) {
  RopeScaling& yarn = config.rope_scaling;
  yarn.original_max_position_embeddings =
      section.integer("original_max_position_embeddings", config.max_position_embeddings, 1,
                      config.max_position_embeddings);
  const double implied = static_cast<double>(config.max_position_embeddings) /
                         static_cast<double>(yarn.original_max_position_embeddings);
  yarn.factor = section.number("factor", implied, 1, 1e6);
  // transformers reads a beta of 0 as one that is not given.
  const auto beta = [&](const char* key, double otherwise) {
    const double value = section.number(key, otherwise, 0, 1e6);
    return value == 0 ? otherwise : value;
  };
  yarn.beta_fast = beta("beta_fast", 32);
  yarn.beta_slow = beta("beta_slow", 1);
  if (yarn.beta_fast < yarn.beta_slow)
    section.fail("beta_fast", fmt::format("is {}; it must be at least beta_slow ({})",
                                          yarn.beta_fast, yarn.beta_slow));
  yarn.mscale = section.number("mscale", 0, 0, 1e3);
  yarn.mscale_all_dim = section.number("mscale_all_dim", 0, 0, 1e3);
  yarn.attention_factor = section.number("attention_factor", 0, 0, 1e3);
  yarn.truncate = flag(section, "truncate", true);
}

}  // namespace

int64_t integer_by_names(Reader& reader, std::string_view name, std::string_view other,
                         std::optional<int64_t> otherwise, int64_t low, int64_t high) {
  if (!reader.has(other)) return reader.integer(name, otherwise, low, high);
  const int64_t value = reader.integer(other, {}, low, high);
  if (reader.has(name))
    if (const int64_t again = reader.integer(name, {}, low, high); again != value)
      reader.fail(other, fmt::format("is {} and {} is {}; they are two names of one size", value,
                                     name, again));
  return value;
}

bool flag(Reader& reader, std::string_view key, std::optional<bool> otherwise) {
  const Value* value = reader.raw(key);
  if (value && value->is_null()) reader.fail(key, "is null; it must be true or false");
  return reader.boolean(key, otherwise);
}

void only_false(Reader& reader, std::string_view key) {
  if (reader.boolean(key, false)) reader.fail(key, "is true; only false is supported");
}

void only_number(Reader& reader, std::string_view key, double value) {
  if (const double number = reader.number(key, value, -1e300, 1e300); number != value)
    reader.fail(key, fmt::format("is {}; only {} is supported", number, value));
}

void read_rope_config(Reader& reader, ModelConfig& config) {
  constexpr double kLowTheta = 2, kHighTheta = 1e12;
  const bool newer = reader.has("rope_parameters");
  if (reader.has("rope_scaling") && newer)
    reader.fail("rope_scaling", "stands beside rope_parameters; only one of them may be given");
  const bool outside = reader.has("rope_theta");
  config.rope_theta = reader.number("rope_theta", 10000, kLowTheta, kHighTheta);
  Reader section = reader.section(newer ? "rope_parameters" : "rope_scaling");
  const double theta = section.number("rope_theta", config.rope_theta, kLowTheta, kHighTheta);
  if (outside && theta != config.rope_theta)
    section.fail("rope_theta", fmt::format("is {} and the one outside is {}; they must be equal",
                                           theta, config.rope_theta));
  config.rope_theta = theta;
  only_number(section, "partial_rotary_factor", 1);
  only_number(reader, "partial_rotary_factor", 1);

  const std::vector<std::string> types = {"default", "yarn"};
  const bool has_type = section.has("type");
  const std::string old_name = section.choice("type", "default", types);
  const std::string type = section.choice("rope_type", old_name, types);
  if (has_type && type != old_name)
    section.fail("type", fmt::format("is \"{}\" and rope_type is \"{}\"; they are two names of "
                                     "one choice",
                                     old_name, type));
  if (type == "yarn") read_yarn(section, config);
  section.finish();
}

void read_common_config(Reader& reader, ModelConfig& config) {
  for (const char* key : kIgnored) reader.ignore(key);
  only_false(reader, "attention_bias");
  only_false(reader, "mlp_bias");
  reader.choice("hidden_act", "silu", {"silu"});
  only_number(reader, "pretraining_tp", 1);
  if (reader.has("quantization_config"))
    reader.fail("quantization_config",
                "is given; quantised weights are not supported: convert them to BF16 and leave "
                "this key out");

  config.vocab_size = reader.integer("vocab_size", {}, 1, 1 << 24);
  config.hidden_size = reader.integer("hidden_size", {}, 1, kMaxWidth);
  config.num_hidden_layers = reader.integer("num_hidden_layers", {}, 1, kMaxLayers);
  config.max_position_embeddings =
      reader.integer("max_position_embeddings", {}, 1, int64_t{1} << 30);
  config.rms_norm_eps = reader.number("rms_norm_eps", 1e-6, 0, 1);
  config.initializer_range = reader.number("initializer_range", 0.02, 0, 10);
  config.tie_word_embeddings = flag(reader, "tie_word_embeddings", false);
  config.num_attention_heads = reader.integer("num_attention_heads", {}, 1, kMaxHeads);
  config.attention_dropout = reader.number("attention_dropout", 0, 0, 0.99);
  config.intermediate_size = reader.integer("intermediate_size", {}, 1, kMaxInner);
  config.norm_topk_prob = flag(reader, "norm_topk_prob", {});
  read_rope_config(reader, config);
}

void check_experts(const Reader& reader, const ModelConfig& config) {
  const int64_t experts = config.n_routed_experts, groups = config.n_group;
  if (experts * config.layers() > kMaxExpertsInAll)
    reader.fail("num_hidden_layers",
                fmt::format("times {} experts is {}; it must be at most {}", experts,
                            experts * config.layers(), kMaxExpertsInAll));
  if (experts % groups != 0)
    reader.fail("n_group",
                fmt::format("is {}; it must divide n_routed_experts ({})", groups, experts));
  // A group's score is the sum of its two largest.
  if (groups > 1 && experts / groups < 2)
    reader.fail("n_group", fmt::format("is {}; each group needs at least 2 of the {} experts",
                                       groups, experts));
  if (config.topk_group > groups)
    reader.fail("topk_group",
                fmt::format("is {}; it must be at most n_group ({})", config.topk_group, groups));
  const int64_t left = experts / groups * config.topk_group;
  if (config.num_experts_per_tok > left)
    reader.fail("num_experts_per_tok",
                groups == 1
                    ? fmt::format("is {}; there are {} experts", config.num_experts_per_tok, left)
                    : fmt::format("is {}; {} of {} groups leave {} experts",
                                  config.num_experts_per_tok, config.topk_group, groups, left));
}

}  // namespace rondo

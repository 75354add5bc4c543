#include "model/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "model/model_testing.h"

namespace rondo {
namespace {

TEST(Config, ReadsDeepSeekV3AsTheHubHasIt) {
  std::vector<std::string> warnings;
  const ModelConfig c = read_config(kDeepSeekV3, "{}", &warnings);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(c.architecture, "DeepseekV3ForCausalLM");
  EXPECT_EQ(c.attention, ModelConfig::Attention::kMla);
  EXPECT_EQ(c.layers(), 62);
  EXPECT_EQ(std::count(c.moe_layer.begin(), c.moe_layer.end(), 1), 59);
  EXPECT_FALSE(c.is_moe(2));
  EXPECT_TRUE(c.is_moe(3));
  EXPECT_EQ(c.qk_head_dim(), 192);
  EXPECT_EQ(c.num_key_value_heads, 128);
  EXPECT_TRUE(c.rope_interleave);  // the default, which this file leaves out
  EXPECT_TRUE(c.sigmoid_scores && c.router_bias && c.norm_topk_prob);
  EXPECT_EQ(c.rope_scaling.original_max_position_embeddings, 4096);
  EXPECT_EQ(c.json, parse_json(kDeepSeekV3, ""));
}

TEST(Config, ReadsQwen3MoeAsTheHubHasIt) {
  const ModelConfig c = read_config(kQwen3Moe);
  EXPECT_EQ(c.attention, ModelConfig::Attention::kGqa);
  EXPECT_EQ(c.n_routed_experts, 128);
  EXPECT_EQ(c.n_shared_experts, 0);
  EXPECT_EQ(c.qk_head_dim(), 128);
  EXPECT_EQ(c.value_head_dim(), 128);
  EXPECT_EQ(c.rope_theta, 1e6);
  EXPECT_EQ(c.sliding_window, 0);
  EXPECT_FALSE(c.sigmoid_scores || c.router_bias || c.rope_interleave);
  EXPECT_EQ(c.num_nextn_predict_layers, 0);
}

TEST(Config, ReadsWhatTransformers5Writes) {
  const ModelConfig deepseek = read_config(kTinyDeepSeek, R"({
    "dtype": "float32", "head_dim": 2, "qk_head_dim": 6, "num_key_value_heads": 2,
    "rope_parameters": {"beta_fast": 32, "beta_slow": 1, "factor": 4, "mscale": 1.0,
      "mscale_all_dim": 0.5, "original_max_position_embeddings": 16, "rope_theta": 500,
      "rope_type": "yarn", "type": "yarn"}})");
  EXPECT_EQ(deepseek.rope_theta, 500);
  EXPECT_EQ(deepseek.rope_scaling.factor, 4);
  EXPECT_EQ(deepseek.rope_scaling.mscale_all_dim, 0.5);
  const ModelConfig qwen = read_config(kTinyQwen, R"({
    "rope_parameters": {"rope_theta": 300.0, "rope_type": "default"}})");
  EXPECT_EQ(qwen.rope_theta, 300);
  EXPECT_EQ(qwen.rope_scaling.factor, 1);
  EXPECT_EQ(qwen.head_dim, 2);  // hidden_size / num_attention_heads
  EXPECT_EQ(qwen.n_routed_experts, 3);
  EXPECT_EQ(qwen.moe_layer, (std::vector<uint8_t>{0, 1}));
}

TEST(Config, ReadsWhatMayBeLeftOutOrNull) {
  EXPECT_EQ(read_config(kTinyDeepSeek, R"({"q_lora_rank": null})").q_lora_rank, 0);
  EXPECT_EQ(read_config(kTinyDeepSeek, R"({"n_shared_experts": null})").n_shared_experts, 0);
  EXPECT_EQ(read_config(kTinyDeepSeek, R"({"rope_interleave": false})").rope_interleave, false);
  const ModelConfig dense = read_config(kTinyDeepSeek, R"({"n_routed_experts": 0})");
  EXPECT_EQ(dense.moe_layer, (std::vector<uint8_t>{0, 0, 0}));
  EXPECT_EQ(
      read_config(kTinyQwen, R"({"mlp_only_layers": null, "decoder_sparse_step": 2})").moe_layer,
      (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(
      read_config(kTinyQwen, R"({"use_sliding_window": true, "sliding_window": 7})").sliding_window,
      7);
  EXPECT_EQ(read_config(kTinyQwen, R"({"sliding_window": 7})").sliding_window, 0);
}

// Frequencies as transformers 5.24 gives them (float32), and DeepSeek-V3's softmax scale.
TEST(Config, YarnIsThatOfTransformers) {
  const ModelConfig c = read_config(kDeepSeekV3);
  const std::vector<double> freq = rope_inv_freq(c);
  ASSERT_EQ(freq.size(), 32u);
  const std::vector<std::pair<size_t, double>> expected = {{0, 1},
                                                           {8, 0.100000001},
                                                           {10, 0.0562341288},
                                                           {11, 0.0390069261},
                                                           {16, 0.00550000044},
                                                           {21, 0.000414990413},
                                                           {22, 0.00017782794},
                                                           {23, 3.3338034e-05},
                                                           {31, 3.33380353e-06}};
  for (const auto& [i, value] : expected) EXPECT_NEAR(freq[i] / value, 1, 2e-6) << i;
  EXPECT_EQ(rope_scale(c), 1);
  EXPECT_NEAR(softmax_scale(c), 0.1352338, 5e-8);
  EXPECT_NEAR(softmax_scale(c) * std::sqrt(192.0), 1.8738542, 5e-8);

  const ModelConfig plain = read_config(kTinyDeepSeek);
  EXPECT_EQ(rope_inv_freq(plain), std::vector<double>{1});
  EXPECT_EQ(rope_scale(plain), 1);
  EXPECT_NEAR(softmax_scale(plain), 1 / std::sqrt(6.0), 1e-15);
}

TEST(Config, YarnScalesCosAndSinByTheRatioOfMscales) {
  const auto with = [](const char* scaling) { return read_config(kTinyQwen, scaling); };
  const ModelConfig none = with(
      R"({"rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16}})");
  EXPECT_NEAR(rope_scale(none), 0.1 * std::log(4.0) + 1, 1e-15);
  EXPECT_NEAR(softmax_scale(none), 1 / std::sqrt(2.0), 1e-15);
  const ModelConfig both = with(
      R"({"rope_scaling": {"rope_type": "yarn", "factor": 4, "mscale": 2, "mscale_all_dim": 3}})");
  EXPECT_NEAR(rope_scale(both), (0.2 * std::log(4.0) + 1) / (0.3 * std::log(4.0) + 1), 1e-15);
  EXPECT_NEAR(softmax_scale(both), 1 / std::sqrt(2.0), 1e-15);  // grouped queries: unchanged
  EXPECT_EQ(both.rope_scaling.original_max_position_embeddings, 64);
  // One mscale alone counts for nothing.
  EXPECT_EQ(rope_scale(with(R"({"rope_scaling": {"type": "yarn", "factor": 4, "mscale": 2}})")),
            rope_scale(none));
  EXPECT_EQ(rope_scale(with(
                R"({"rope_scaling": {"type": "yarn", "factor": 4, "attention_factor": 0.75}})")),
            0.75);
  // Without a factor, the ratio of the two lengths.
  EXPECT_EQ(with(R"({"rope_scaling": {"type": "yarn", "original_max_position_embeddings": 16}})")
                .rope_scaling.factor,
            4);
}

// Without `truncate` the ramp between kept and slowed frequencies begins inside a pair.
TEST(Config, YarnWithoutTruncation) {
  const std::vector<double> freq = rope_inv_freq(read_config(
      kTinyQwen,
      R"({"head_dim": 16, "rope_scaling": {"type": "yarn", "factor": 4, "truncate": false,
                    "original_max_position_embeddings": 32}})"));
  const std::vector<double> expected = {1,
                                        0.14849025,
                                        0.0250000004,
                                        0.00790569466,
                                        0.00249999994,
                                        0.000790569466,
                                        0.000250000012,
                                        7.90569466e-05};
  ASSERT_EQ(freq.size(), expected.size());
  for (size_t i = 0; i < freq.size(); ++i) EXPECT_NEAR(freq[i] / expected[i], 1, 2e-6) << i;
}

TEST(Config, WarnsOfOneExpertWithNormalisation) {
  std::vector<std::string> warnings;
  read_config(kTinyDeepSeek, R"({"num_experts_per_tok": 1})", &warnings);
  EXPECT_EQ(warnings, std::vector<std::string>{
                          "c.json: num_experts_per_tok is 1 and norm_topk_prob is true: every "
                          "routing weight is the same constant, so that the loss gives the router "
                          "no gradient"});
  warnings.clear();
  read_config(kTinyQwen, R"({"num_experts_per_tok": 1})", &warnings);
  EXPECT_TRUE(warnings.empty());
}

struct Refusal {
  const char* text;
  const char* changes;
  const char* message;
};

TEST(Config, RefusesByName) {
  const Refusal refusals[] = {
      {kTinyDeepSeek, R"({"model_type": "llama"})",
       "model_type is \"llama\"; it must be one of deepseek_v3, qwen3_moe"},
      {"{}", "{}", "model_type is missing; it has no default"},
      {kTinyDeepSeek, R"({"architectures": ["DeepseekV3Model"]})",
       "architectures is DeepseekV3Model; of deepseek_v3 only DeepseekV3ForCausalLM is supported"},
      {kTinyDeepSeek, R"({"attention_bias": true})",
       "attention_bias is true; only false is supported"},
      {kTinyQwen, R"({"hidden_act": "gelu"})", "hidden_act is \"gelu\"; it must be one of silu"},
      {kTinyDeepSeek, R"({"pretraining_tp": 2})", "pretraining_tp is 2; only 1 is supported"},
      {kTinyDeepSeek, R"({"moe_layer_freq": 2})", "moe_layer_freq is 2; only 1 is supported"},
      {kTinyDeepSeek, R"({"topk_method": "greedy"})",
       "topk_method is \"greedy\"; it must be one of noaux_tc"},
      {kTinyDeepSeek, R"({"scoring_func": "softmax"})",
       "scoring_func is \"softmax\"; it must be one of sigmoid"},
      {kTinyDeepSeek, R"({"quantization_config": {"quant_method": "fp8"}})",
       "quantization_config is given; quantised weights are not supported: convert them to BF16 "
       "and leave this key out"},
      {kTinyQwen, R"({"partial_rotary_factor": 0.5})",
       "partial_rotary_factor is 0.5; only 1 is supported"},
      {kTinyDeepSeek, R"({"kv_lora_rnak": 3})",
       "kv_lora_rnak is not a known key; did you mean kv_lora_rank?"},
      {kTinyQwen, R"({"n_group": 2})", "n_group is not a known key; "},
      {kTinyQwen, R"({"use_sliding_window": true, "sliding_window": 9, "max_window_layers": 1})",
       "max_window_layers is 1; a window in some layers only is not supported: 0 gives it to every "
       "layer"},
      {kTinyQwen, R"({"use_sliding_window": true})",
       "sliding_window is missing; use_sliding_window is true"},
      {kTinyDeepSeek, R"({"num_key_value_heads": 1})",
       "num_key_value_heads is 1; it must be 2 (num_attention_heads)"},
      {kTinyDeepSeek, R"({"qk_head_dim": 7})",
       "qk_head_dim is 7; it must be 6 (qk_nope_head_dim + qk_rope_head_dim)"},
      {kTinyDeepSeek, R"({"num_mtp_layers": 2})",
       "num_mtp_layers is 2 and num_nextn_predict_layers is 1; they are two names of one size"},
      {kTinyDeepSeek, R"({"norm_topk_prob": null})",
       "norm_topk_prob is null; it must be true or false"},
  };
  for (const Refusal& r : refusals) {
    const std::string message = message_of([&] { read_config(r.text, r.changes); });
    const std::string expected = std::string("c.json: ") + r.message;
    // A message that ends in a list of all known keys is compared up to there.
    EXPECT_EQ(expected.back() == ' ' ? message.substr(0, expected.size()) : message, expected);
  }
  Value json = parse_json(kTinyDeepSeek, "");
  json.erase("q_lora_rank");
  EXPECT_EQ(message_of([&] { read_config(json); }),
            "c.json: q_lora_rank is missing; it must be an integer, or null for none");
  EXPECT_EQ(message_of([&] { read_config(Value(3)); }),
            "c.json: the file is an integer; it must be a table");
}

TEST(Config, RefusesRopeThatItDoesNotKnow) {
  const Refusal refusals[] = {
      {kTinyQwen, R"({"rope_scaling": {"type": "linear", "factor": 2}})",
       "rope_scaling.type is \"linear\"; it must be one of default, yarn"},
      {kTinyQwen, R"({"rope_parameters": {"rope_type": "llama3"}})",
       "rope_parameters.rope_type is \"llama3\"; it must be one of default, yarn"},
      {kTinyQwen, R"({"rope_parameters": {"rope_type": "default", "type": "yarn"}})",
       "rope_parameters.type is \"yarn\" and rope_type is \"default\"; they are two names of one "
       "choice"},
      {kTinyQwen, R"({"rope_parameters": {}, "rope_scaling": {}})",
       "rope_scaling stands beside rope_parameters; only one of them may be given"},
      {kTinyQwen, R"({"rope_theta": 5, "rope_parameters": {"rope_theta": 6}})",
       "rope_parameters.rope_theta is 6 and the one outside is 5; they must be equal"},
      {kTinyQwen, R"({"rope_theta": 1})",
       "rope_theta is 1; it must lie between 2 and 1000000000000"},
      {kTinyQwen, R"({"rope_scaling": {"type": "yarn", "original_max_position_embeddings": 65}})",
       "rope_scaling.original_max_position_embeddings is 65; it must lie between 1 and 64"},
      {kTinyQwen, R"({"rope_scaling": {"type": "yarn", "factor": 0.5}})",
       "rope_scaling.factor is 0.5; it must lie between 1 and 1000000"},
      {kTinyQwen, R"({"rope_scaling": {"type": "yarn", "beta_fast": 1, "beta_slow": 3}})",
       "rope_scaling.beta_fast is 1; it must be at least beta_slow (3)"},
      {kTinyQwen, R"({"rope_scaling": {"type": "yarn", "mscales": 1}})",
       "rope_scaling.mscales is not a known key; did you mean rope_scaling.mscale?"},
      {kTinyDeepSeek, R"({"qk_rope_head_dim": 3})",
       "qk_rope_head_dim is 3; RoPE needs an even number"},
      {kTinyQwen, R"({"head_dim": 3})", "head_dim is 3; RoPE needs an even number"},
  };
  for (const Refusal& r : refusals)
    EXPECT_EQ(message_of([&] { read_config(r.text, r.changes); }),
              std::string("c.json: ") + r.message);
}

TEST(Config, RefusesSizesThatDoNotFit) {
  const Refusal refusals[] = {
      {kTinyDeepSeek, R"({"n_group": 3})", "n_group is 3; it must divide n_routed_experts (4)"},
      {kTinyDeepSeek, R"({"n_group": 4})",
       "n_group is 4; each group needs at least 2 of the 4 experts"},
      {kTinyDeepSeek, R"({"topk_group": 3})", "topk_group is 3; it must be at most n_group (2)"},
      {kTinyDeepSeek, R"({"num_experts_per_tok": 3})",
       "num_experts_per_tok is 3; 1 of 2 groups leave 2 experts"},
      {kTinyQwen, R"({"num_experts_per_tok": 4})", "num_experts_per_tok is 4; there are 3 experts"},
      {kTinyQwen, R"({"num_key_value_heads": 3})",
       "num_key_value_heads is 3; it must divide num_attention_heads (4)"},
      {kTinyQwen, R"({"num_attention_heads": 6})",
       "num_attention_heads is 6; without head_dim it must divide hidden_size (8)"},
      {kTinyQwen, R"({"mlp_only_layers": [2]})", "mlp_only_layers holds 2; layers are 0 to 1"},
      {kTinyQwen, R"({"mlp_only_layers": [0.5]})", "mlp_only_layers holds 0.5; layers are 0 to 1"},
      {kTinyQwen, R"({"hidden_size": 0})", "hidden_size is 0; it must lie between 1 and 262144"},
      {kTinyQwen, R"({"vocab_size": 4611686018427387904})",
       "vocab_size is 4611686018427387904; it must lie between 1 and 16777216"},
      {kTinyDeepSeek, R"({"moe_intermediate_size": -3})",
       "moe_intermediate_size is -3; it must lie between 1 and 1048576"},
      {kTinyDeepSeek, R"({"num_hidden_layers": 1000, "n_routed_experts": 16384})",
       "num_hidden_layers times 16384 experts is 16400384; it must be at most 1048576"},
      {kTinyDeepSeek, R"({"attention_dropout": 1})",
       "attention_dropout is 1; it must lie between 0 and 0.99"},
      {kTinyDeepSeek, R"({"hidden_size": "6"})", "hidden_size is a string; it must be an integer"},
  };
  for (const Refusal& r : refusals)
    EXPECT_EQ(message_of([&] { read_config(r.text, r.changes); }),
              std::string("c.json: ") + r.message);
}

TEST(Config, LoadsFromAFolder) {
  const std::string folder = testing::TempDir() + "rondo_config_test";
  fs::create_directories(folder);
  write_file_atomic(folder + "/config.json", kTinyQwen);
  std::vector<std::string> warnings;
  EXPECT_EQ(load_model_config(folder, warnings).vocab_size, 11);
  fs::remove(folder + "/config.json");
  EXPECT_EQ(message_of([&] { load_model_config(folder, warnings); }),
            folder + "/config.json: cannot open: No such file or directory");
}

}  // namespace
}  // namespace rondo

#include "model/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/model_testing.h"

namespace rondo {
namespace {

std::vector<std::string> names(const ParameterTable& table) {
  std::vector<std::string> out;
  for (const Parameter& row : table.rows()) out.push_back(row.name);
  return out;
}

TEST(Parameters, DeepSeekV3HasTheHubsNumber) {
  // 671,026,404,352 as transformers counts (its router bias is no parameter there), 58 biases of
  // 256, and the MTP layer without its copies of embedding and head.
  const ModelConfig c = read_config(kDeepSeekV3, R"({"num_nextn_predict_layers": 0})");
  EXPECT_EQ(ParameterTable::build(c).parameters(), 671'026'404'352 + 58 * 256);
  EXPECT_EQ(ParameterTable::build(read_config(kQwen3Moe)).parameters(), 30'532'122'624);
}

TEST(Parameters, DeepSeekV3HasTheHubsRows) {
  const ParameterTable table = ParameterTable::build(read_config(kTinyDeepSeek));
  const std::vector<std::string> expected = {"model.embed_tokens.weight",
                                             "model.layers.0.input_layernorm.weight",
                                             "model.layers.0.self_attn.q_a_proj.weight",
                                             "model.layers.0.self_attn.q_a_layernorm.weight",
                                             "model.layers.0.self_attn.q_b_proj.weight",
                                             "model.layers.0.self_attn.kv_a_proj_with_mqa.weight",
                                             "model.layers.0.self_attn.kv_a_layernorm.weight",
                                             "model.layers.0.self_attn.kv_b_proj.weight",
                                             "model.layers.0.self_attn.o_proj.weight",
                                             "model.layers.0.post_attention_layernorm.weight",
                                             "model.layers.0.mlp.gate_proj.weight",
                                             "model.layers.0.mlp.up_proj.weight",
                                             "model.layers.0.mlp.down_proj.weight",
                                             "model.layers.1.input_layernorm.weight"};
  const std::vector<std::string> all = names(table);
  EXPECT_EQ(std::vector<std::string>(all.begin(), all.begin() + 14), expected);
  const std::pair<const char*, std::vector<int64_t>> shapes[] = {
      {"model.embed_tokens.weight", {11, 6}},
      {"model.layers.1.self_attn.q_a_proj.weight", {4, 6}},
      {"model.layers.1.self_attn.q_b_proj.weight", {12, 4}},
      {"model.layers.1.self_attn.kv_a_proj_with_mqa.weight", {7, 6}},
      {"model.layers.1.self_attn.kv_a_layernorm.weight", {5}},
      {"model.layers.1.self_attn.kv_b_proj.weight", {14, 5}},
      {"model.layers.1.self_attn.o_proj.weight", {6, 6}},
      {"model.layers.1.mlp.gate.weight", {4, 6}},
      {"model.layers.1.mlp.gate.e_score_correction_bias", {4}},
      {"model.layers.1.mlp.experts.3.gate_proj.weight", {3, 6}},
      {"model.layers.1.mlp.experts.3.down_proj.weight", {6, 3}},
      {"model.layers.1.mlp.shared_experts.up_proj.weight", {6, 6}},
      {"model.layers.2.enorm.weight", {6}},
      {"model.layers.2.hnorm.weight", {6}},
      {"model.layers.2.eh_proj.weight", {6, 12}},
      {"model.layers.2.mlp.experts.0.up_proj.weight", {3, 6}},
      {"model.layers.2.shared_head.norm.weight", {6}},
      {"model.layers.2.shared_head.head.weight", {11, 6}},
      {"model.norm.weight", {6}},
      {"lm_head.weight", {11, 6}}};
  for (const auto& [name, shape] : shapes) {
    const Parameter* row = table.find(name);
    ASSERT_TRUE(row) << name;
    EXPECT_EQ(row->shape, shape) << name;
  }
  EXPECT_FALSE(table.find("model.layers.3.input_layernorm.weight"));
  EXPECT_FALSE(table.find("model.layers.0.self_attn.q_proj.weight"));

  const Parameter* bias = table.find("model.layers.1.mlp.gate.e_score_correction_bias");
  EXPECT_TRUE(!bias->trained && !bias->decay && bias->keep_f32);
  EXPECT_EQ(bias->init, Parameter::Init::kZeros);
  const Parameter* norm = table.find("model.norm.weight");
  EXPECT_TRUE(norm->trained && !norm->decay && !norm->keep_f32);
  EXPECT_EQ(norm->init, Parameter::Init::kOnes);
  EXPECT_TRUE(table.find("lm_head.weight")->decay);

  const ParameterTable no_rank =
      ParameterTable::build(read_config(kTinyDeepSeek, R"({"q_lora_rank": null})"));
  EXPECT_EQ(no_rank.find("model.layers.0.self_attn.q_proj.weight")->shape,
            (std::vector<int64_t>{12, 6}));
  EXPECT_FALSE(no_rank.find("model.layers.0.self_attn.q_a_proj.weight"));
}

TEST(Parameters, MtpSharesEmbeddingAndHead) {
  const ParameterTable table = ParameterTable::build(read_config(kTinyDeepSeek));
  const Parameter* embedding = table.find("model.embed_tokens.weight");
  const Parameter* copy = table.find("model.layers.2.embed_tokens.weight");
  EXPECT_TRUE(copy->alias && !embedding->alias);
  EXPECT_EQ(copy->offset, embedding->offset);
  const Parameter* head = table.find("model.layers.2.shared_head.head.weight");
  EXPECT_TRUE(head->alias);
  EXPECT_EQ(head->offset, table.find("lm_head.weight")->offset);

  const ParameterTable tied =
      ParameterTable::build(read_config(kTinyDeepSeek, R"({"tie_word_embeddings": true})"));
  EXPECT_FALSE(tied.find("lm_head.weight"));
  EXPECT_EQ(tied.find("model.layers.2.shared_head.head.weight")->offset,
            tied.find("model.embed_tokens.weight")->offset);
  EXPECT_EQ(table.parameters() - tied.parameters(), 11 * 6);
}

TEST(Parameters, QwenHasTheHubsRows) {
  const ParameterTable table = ParameterTable::build(read_config(kTinyQwen));
  const std::vector<std::string> expected = {"model.embed_tokens.weight",
                                             "model.layers.0.input_layernorm.weight",
                                             "model.layers.0.self_attn.q_proj.weight",
                                             "model.layers.0.self_attn.k_proj.weight",
                                             "model.layers.0.self_attn.v_proj.weight",
                                             "model.layers.0.self_attn.o_proj.weight",
                                             "model.layers.0.self_attn.q_norm.weight",
                                             "model.layers.0.self_attn.k_norm.weight",
                                             "model.layers.0.post_attention_layernorm.weight",
                                             "model.layers.0.mlp.gate_proj.weight",
                                             "model.layers.0.mlp.up_proj.weight",
                                             "model.layers.0.mlp.down_proj.weight"};
  const std::vector<std::string> all = names(table);
  EXPECT_EQ(std::vector<std::string>(all.begin(), all.begin() + 12), expected);
  EXPECT_EQ(table.find("model.layers.0.self_attn.k_proj.weight")->shape,
            (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(table.find("model.layers.0.self_attn.k_norm.weight")->shape, (std::vector<int64_t>{2}));
  EXPECT_TRUE(table.find("model.layers.1.mlp.experts.2.up_proj.weight"));
  EXPECT_FALSE(table.find("model.layers.1.mlp.gate.e_score_correction_bias"));
  EXPECT_FALSE(table.find("model.layers.1.mlp.shared_experts.up_proj.weight"));
}

TEST(Parameters, RowsOfABufferLieSideBySide) {
  const ParameterTable table = ParameterTable::build(read_config(kTinyDeepSeek));
  std::vector<float> memory(static_cast<size_t>(table.flat_elements()));
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  const View flat(memory.data(), DType::kF32, Memory::kHost, {table.flat_elements()});

  const View gate_up = table.view(flat, "model.layers.1.mlp.experts.gate_up");
  EXPECT_EQ(to_string(gate_up), "f32[4, 6, 6]");
  const View up = table.view(flat, "model.layers.1.mlp.experts.2.up_proj.weight");
  EXPECT_EQ(to_string(up), "f32[3, 6]");
  EXPECT_EQ(up.data, gate_up[2].slice(0, 3, 6).data);
  const View down = table.view(flat, "model.layers.1.mlp.experts.down");
  EXPECT_EQ(to_string(down), "f32[4, 6, 3]");
  EXPECT_EQ(table.view(flat, "model.layers.1.mlp.experts.3.down_proj.weight").data, down[3].data);
  EXPECT_EQ(to_string(table.view(flat, "model.layers.0.mlp.gate_up")), "f32[10, 6]");
  EXPECT_EQ(to_string(table.view(flat, "model.layers.1.mlp.shared_experts.gate_up")), "f32[12, 6]");
  EXPECT_TRUE(gate_up.is_dense() && up.is_dense() && down.is_dense());
  EXPECT_THROW(table.view(flat, "model.layers.0.mlp.experts.down"), InvariantError);
}

TEST(Parameters, BuffersAreAlignedAndDoNotOverlap) {
  const ParameterTable table = ParameterTable::build(read_config(kTinyDeepSeek));
  std::vector<int> uses(static_cast<size_t>(table.flat_elements()));
  int64_t used = 0;
  for (const Parameter& row : table.rows()) {
    if (row.alias) continue;
    used += row.elements();
    for (int64_t i = 0; i < row.elements(); ++i) ++uses.at(static_cast<size_t>(row.offset + i));
  }
  EXPECT_EQ(std::count(uses.begin(), uses.end(), 1), used);
  EXPECT_EQ(std::count(uses.begin(), uses.end(), 0), table.flat_elements() - used);
  EXPECT_EQ(used, table.parameters());
  for (const char* name : {"model.norm.weight", "model.layers.1.mlp.gate.weight",
                           "model.layers.1.mlp.experts.0.gate_proj.weight"})
    EXPECT_EQ(table.find(name)->offset * static_cast<int64_t>(sizeof(float)) % 64, 0) << name;
}

TEST(Parameters, RefusesRowsThatDoNotFit) {
  ParameterTable table;
  table.add({.name = "a", .shape = {2, 3}});
  EXPECT_THROW(table.add({.name = "a", .shape = {2}}), InvariantError);
  EXPECT_THROW(table.add_buffer("b", {3, 2}, {{.name = "c", .shape = {2, 2}}}), InvariantError);
  EXPECT_THROW(table.add_alias({.name = "d", .shape = {3, 2}}, "a"), InvariantError);
}

TEST(Parameters, InitialValuesDependOnSeedAndNameAlone) {
  const ModelConfig c =
      read_config(kTinyDeepSeek, R"({"initializer_range": 0.5, "vocab_size": 5000})");
  const ModelConfig other =
      read_config(kTinyDeepSeek, R"({"initializer_range": 0.5, "n_shared_experts": 1})");
  const ParameterTable table = ParameterTable::build(c), other_table = ParameterTable::build(other);
  const std::vector<float> values = initial_values(table, c, 7);
  EXPECT_EQ(values, initial_values(table, c, 7));
  EXPECT_NE(values, initial_values(table, c, 8));
  const std::vector<float> other_values = initial_values(other_table, other, 7);
  const Parameter* a = table.find("model.layers.2.mlp.experts.3.up_proj.weight");
  const Parameter* b = other_table.find(a->name);
  ASSERT_NE(a->offset, b->offset);
  EXPECT_TRUE(std::equal(values.begin() + a->offset, values.begin() + a->offset + a->elements(),
                         other_values.begin() + b->offset));

  const Parameter* embedding = table.find("model.embed_tokens.weight");
  double sum = 0, squares = 0;
  const double n = static_cast<double>(embedding->elements());
  for (int64_t i = 0; i < embedding->elements(); ++i) {
    const double v = values[static_cast<size_t>(embedding->offset + i)];
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / n, 0, 4 * 0.5 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n), 0.5, 4 * 0.5 / std::sqrt(2 * n));

  std::vector<float> rest = values;  // what is left when ones and normal values are taken out
  for (const Parameter& row : table.rows()) {
    const auto begin = rest.begin() + row.offset, end = begin + row.elements();
    if (row.init == Parameter::Init::kOnes) {
      EXPECT_EQ(std::count(begin, end, 1.f), end - begin) << row.name;
    }
    if (row.init == Parameter::Init::kNormal && !row.alias) {
      EXPECT_EQ(std::count(begin, end, 0.f), 0) << row.name;
    }
    if (row.init != Parameter::Init::kZeros) std::fill(begin, end, 0.f);
  }
  EXPECT_EQ(std::count(rest.begin(), rest.end(), 0.f), table.flat_elements());
}

}  // namespace
}  // namespace rondo

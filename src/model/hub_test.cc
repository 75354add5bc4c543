#include "model/hub.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "model/model_testing.h"

namespace rondo {
namespace {

class Hub : public testing::Test {
 protected:
  Hub() { fs::create_directories(folder_); }
  ~Hub() override { fs::remove_all(folder_); }

  std::string folder_ = testing::TempDir() + "rondo_hub_" +
                        testing::UnitTest::GetInstance()->current_test_info()->name();
  ModelConfig config_ = read_config(kTinyDeepSeek);
  ParameterTable table_ = ParameterTable::build(config_);
  std::vector<float> flat_ = initial_values(table_, config_, 1);

  std::string file(const char* name = "model.safetensors") { return folder_ + "/" + name; }
  // The saved tensors as items to write again; `change` may alter or drop (false) each.
  void rewrite(const std::function<bool(SafetensorsItem&)>& change) {
    std::vector<SafetensorsItem> items;
    const SafetensorsFile old(file());
    for (const auto& [name, entry] : old.tensors()) {
      SafetensorsItem item = {name, entry.dtype, entry.shape, [entry = entry](std::byte* out) {
                                std::memcpy(out, entry.data, static_cast<size_t>(entry.bytes));
                              }};
      if (change(item)) items.push_back(std::move(item));
    }
    write_safetensors(file("new"), items);
    fs::rename(file("new"), file());
  }
  std::string refusal(const std::vector<float>* missing_mtp = nullptr) {
    const std::string message =
        message_of([&] { load_weights(table_, config_, folder_, missing_mtp); });
    return message.starts_with(folder_ + ": ") ? message.substr(folder_.size() + 2) : message;
  }
  void write_shards(const std::string& weight_map) {
    const auto item = [](const char* name) {
      return SafetensorsItem{name, DType::kU8, {1}, [](std::byte* out) { *out = std::byte{1}; }};
    };
    write_safetensors(file("m-1.safetensors"), {item("a"), item("b")});
    write_safetensors(file("m-2.safetensors"), {item("c")});
    write_file_atomic(file("model.safetensors.index.json"), weight_map);
  }
};

TEST_F(Hub, SavedAndLoadedAreTheSameBits) {
  flat_[1] = 0x1p-140f;  // subnormal
  flat_[2] = -0.f;
  save_weights(table_, config_, flat_, folder_);
  const std::vector<float> again = load_weights(table_, config_, folder_);
  ASSERT_EQ(again.size(), flat_.size());
  EXPECT_EQ(std::memcmp(again.data(), flat_.data(), flat_.size() * sizeof(float)), 0);

  const SafetensorsFile saved(file());
  EXPECT_EQ(saved.metadata().at("format"), "pt");
  EXPECT_EQ(saved.tensors().size(), table_.rows().size());  // copies too
  std::vector<std::string> warnings;
  const ModelConfig read = load_model_config(folder_, warnings);
  EXPECT_EQ(read.vocab_size, config_.vocab_size);
  EXPECT_EQ(read.json.find("architectures")->as_array()->at(0), Value("DeepseekV3ForCausalLM"));
  EXPECT_EQ(*read.json.find("torch_dtype"), Value("float32"));
}

TEST_F(Hub, SavesBf16RoundedToNearestEven) {
  config_.json.set("dtype", "float32");
  config_.json.set("torch_dtype", "float32");
  flat_[0] = 1 + 0x1p-8f;             // halfway: down to even
  flat_[1] = 1 + 0x3p-8f;             // halfway: up to even
  flat_[2] = 1 + 0x1p-8f + 0x1p-20f;  // above halfway: up
  const Parameter* bias = table_.find("model.layers.1.mlp.gate.e_score_correction_bias");
  flat_[static_cast<size_t>(bias->offset)] = 1 + 0x1p-20f;
  save_weights(table_, config_, flat_, folder_, DType::kBF16);
  const std::vector<float> again = load_weights(table_, config_, folder_);
  EXPECT_EQ(again[0], 1);
  EXPECT_EQ(again[1], 1 + 0x1p-6f);
  EXPECT_EQ(again[2], 1 + 0x1p-7f);
  EXPECT_EQ(again[static_cast<size_t>(bias->offset)], 1 + 0x1p-20f);  // kept in fp32
  const SafetensorsFile saved(file());
  for (const auto& [name, entry] : saved.tensors()) {
    EXPECT_EQ(entry.dtype, table_.find(name)->keep_f32 ? DType::kF32 : DType::kBF16) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(entry.data) % size_of(entry.dtype), 0u) << name;
  }
  std::vector<std::string> warnings;
  const ModelConfig read = load_model_config(folder_, warnings);
  EXPECT_EQ(*read.json.find("dtype"), Value("bfloat16"));
  EXPECT_FALSE(read.json.find("torch_dtype"));
}

TEST_F(Hub, LoadsF16) {
  for (float& v : flat_) v = std::round(v * 4096) / 4096;  // exact in F16
  save_weights(table_, config_, flat_, folder_, DType::kF16);
  EXPECT_EQ(load_weights(table_, config_, folder_), flat_);
}

TEST_F(Hub, RefusesWhatIsMissingExtraOrAnother) {
  save_weights(table_, config_, flat_, folder_);
  const std::string whole = read_file(file());
  const auto after = [&](const std::function<bool(SafetensorsItem&)>& change) {
    write_file_atomic(file(), whole);
    rewrite(change);
    return refusal();
  };
  EXPECT_EQ(after([](auto&) { return true; }), "no error");
  EXPECT_EQ(after([](auto& item) { return item.name != "model.layers.1.mlp.gate.weight"; }),
            "tensor model.layers.1.mlp.gate.weight is missing; it must be there with shape [4, 6]");
  EXPECT_EQ(after([](auto& item) {
              if (item.name == "model.norm.weight") item.name = "model.norm.bias\n";
              return item.name != "lm_head.weight";
            }),
            "tensor model.norm.weight is missing; it must be there with shape [6]");
  EXPECT_EQ(after([](auto& item) {
              if (item.name == "model.layers.2.embed_tokens.weight") item.name = "x\ny";
              return true;
            }),
            "tensor \"x\\ny\" has no place in the model that config.json describes");
  EXPECT_EQ(after([](auto& item) {
              if (item.name == "lm_head.weight") item.shape = {6, 11};
              return true;
            }),
            "tensor lm_head.weight has shape [6, 11]; it must be [11, 6]");
  EXPECT_EQ(after([](auto& item) {
              if (item.name == "lm_head.weight") item.dtype = DType::kI32;
              return true;
            }),
            "tensor lm_head.weight is I32; it must be F32, BF16 or F16");
}

TEST_F(Hub, CopiesMayBeMissingButNotDiffer) {
  save_weights(table_, config_, flat_, folder_);
  rewrite([](auto& item) {
    return item.name != "model.layers.2.embed_tokens.weight" &&
           item.name != "model.layers.2.shared_head.head.weight";
  });
  EXPECT_EQ(load_weights(table_, config_, folder_), flat_);
  save_weights(table_, config_, flat_, folder_);
  rewrite([](auto& item) {
    if (item.name == "model.layers.2.shared_head.head.weight")
      item.fill = [](std::byte* out) { std::memset(out, 0, 11 * 6 * 4); };
    return true;
  });
  EXPECT_EQ(refusal(),
            "tensor model.layers.2.shared_head.head.weight differs from lm_head.weight; it must be "
            "a copy of it");
}

TEST_F(Hub, MissingMtpLayersKeepWhatIsGiven) {
  save_weights(table_, config_, flat_, folder_);
  rewrite([](auto& item) { return !item.name.starts_with("model.layers.2."); });
  EXPECT_EQ(refusal(),
            "tensor model.layers.2.enorm.weight is missing; it must be there with shape [6] "
            "(init_missing = \"mtp\" begins with a new MTP layer)");
  const std::vector<float> fresh = initial_values(table_, config_, 2);
  const std::vector<float> loaded = load_weights(table_, config_, folder_, &fresh);
  for (const Parameter& row : table_.rows())
    for (int64_t i = row.offset; i < row.offset + row.elements(); ++i) {
      const bool mtp = row.name.starts_with("model.layers.2.") && !row.alias;
      const size_t at = static_cast<size_t>(i);
      ASSERT_EQ(loaded[at], (mtp ? fresh : flat_)[at]) << row.name;
    }
  rewrite([](auto& item) { return item.name != "model.layers.0.mlp.up_proj.weight"; });
  EXPECT_EQ(
      refusal(&fresh),
      "tensor model.layers.0.mlp.up_proj.weight is missing; it must be there with shape [5, 6]");
}

TEST_F(Hub, ReadsShards) {
  write_shards(R"({"metadata": {"total_size": 3}, "weight_map":
    {"a": "m-1.safetensors", "b": "m-1.safetensors", "c": "m-2.safetensors"}})");
  const HubFolder hub(folder_);
  EXPECT_EQ(hub.tensors().size(), 3u);
  EXPECT_EQ(*hub.tensors().at("c").data, std::byte{1});
}

TEST_F(Hub, RefusesShardsThatDisagreeWithTheIndex) {
  const auto refusal = [&](const std::string& json) {
    write_shards(json);
    const std::string message = message_of([&] { HubFolder hub(folder_); });
    return message.starts_with(folder_ + "/") ? message.substr(folder_.size() + 1) : message;
  };
  EXPECT_EQ(refusal(R"({"weight_map": {"a": "m-1.safetensors", "b": "m-1.safetensors",
                        "c": "m-1.safetensors"}})"),
            "m-1.safetensors: has no tensor \"c\", which model.safetensors.index.json says it has");
  EXPECT_EQ(refusal(R"({"weight_map": {"a": "m-1.safetensors"}})"),
            "m-1.safetensors: has tensor \"b\", which model.safetensors.index.json does not name");
  EXPECT_EQ(refusal(R"({"weight_map": {"a": "../m-1.safetensors"}})"),
            "model.safetensors.index.json: weight_map gives tensor \"a\" the file "
            "\"../m-1.safetensors\"; it must be the name of a file beside");
  EXPECT_EQ(
      refusal(R"({"weight_map": {"a": 1}})"),
      "model.safetensors.index.json: weight_map gives tensor \"a\" the file 1; it must be the "
      "name of a file beside");
  EXPECT_EQ(refusal(R"({})"),
            "model.safetensors.index.json: has no weight_map, an object that gives each tensor its "
            "file");
  EXPECT_EQ(refusal(R"({"weight_map": {"a": "m-3.safetensors"}})"),
            "m-3.safetensors: cannot open: No such file or directory");
  fs::remove(file("model.safetensors.index.json"));
  EXPECT_EQ(message_of([&] { HubFolder hub(folder_); }),
            folder_ + ": holds neither model.safetensors nor model.safetensors.index.json");
}

}  // namespace
}  // namespace rondo

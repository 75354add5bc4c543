// Rondo against the tiny models of tests/golden (see README.md there): logits, losses, the gradient
// of every parameter, on every device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "model/hub.h"
#include "model/model.h"

namespace rondo {
namespace {

const std::string kFolder = std::string(RONDO_SOURCE_DIR) + "/tests/golden/";

std::vector<std::string> cases() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (std::filesystem::exists(entry.path() / "golden.safetensors") &&
        entry.path().filename() != "adamw")  // the optimizer's case: tests/e2e
      out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

// The answers of one case.
class Golden {
 public:
  explicit Golden(const std::string& name) : file_(kFolder + name + "/golden.safetensors") {}
  bool has(const std::string& key) const { return file_.tensors().contains(key); }
  std::vector<float> floats(const std::string& key) const { return read<float>(key, DType::kF32); }
  std::vector<int32_t> ints(const std::string& key) const {
    return read<int32_t>(key, DType::kI32);
  }
  double number(const std::string& key, double otherwise = NAN) const {
    return has(key) ? floats(key).at(0) : otherwise;
  }
  const std::vector<int64_t>& shape(const std::string& key) const {
    return file_.tensors().at(key).shape;
  }
  const SafetensorsFile& file() const { return file_; }

 private:
  template <class T>
  std::vector<T> read(const std::string& key, DType dtype) const {
    const auto it = file_.tensors().find(key);
    RONDO_CHECK(it != file_.tensors().end() && it->second.dtype == dtype, "golden key {}", key);
    std::vector<T> out(static_cast<size_t>(it->second.bytes) / sizeof(T));
    std::memcpy(out.data(), it->second.data, static_cast<size_t>(it->second.bytes));
    return out;
  }
  SafetensorsFile file_;
};

Batch batch_of(const Golden& golden) {
  Batch batch;
  batch.ids = golden.ints("input_ids");
  batch.labels = golden.ints("labels");
  const auto doc = golden.ints("doc"), pos = golden.ints("pos");
  const int64_t length = golden.shape("doc")[1];
  for (size_t i = 0; i < doc.size(); ++i)
    batch.places.push_back({static_cast<int32_t>(static_cast<int64_t>(i) / length),
                            static_cast<int32_t>(static_cast<int64_t>(i) % length), doc[i],
                            pos[i]});
  for (int d = 1; golden.has("mtp_input_ids." + std::to_string(d)); ++d) {
    Batch::Mtp mtp{golden.ints("mtp_input_ids." + std::to_string(d)),
                   golden.ints("mtp_labels." + std::to_string(d)),
                   {}};
    for (int32_t& id : mtp.ids) {
      mtp.valid.push_back(id >= 0);
      id = std::max(id, 0);
    }
    batch.mtp.push_back(std::move(mtp));
  }
  return batch;
}

double max_norm_error(const std::vector<float>& got, const std::vector<float>& want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0, scale = 0;
  for (size_t i = 0; i < want.size() && i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    difference = std::max<double>(difference, std::abs(got[i] - want[i]));
    scale = std::max<double>(scale, std::abs(want[i]));
  }
  return difference / scale;
}

double norm_of(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += double(v) * v;
  return std::sqrt(sum);
}

// The golden files hold 0 where a position takes no part.
void zero_rows(std::vector<float>& logits, int64_t vocab, const std::vector<uint8_t>& rows) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (!rows[i]) std::fill_n(logits.begin() + static_cast<int64_t>(i) * vocab, vocab, 0.f);
}

class GoldenCase : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const std::string name = std::get<0>(GetParam());
    golden = std::make_unique<Golden>(name);
    std::vector<std::string> warnings;
    config = load_model_config(kFolder + name, warnings);
    options.mtp_loss_weight = golden->number("mtp_loss_weight", 0.3);
    options.balance_loss_weight = golden->number("balance_alpha", 0);
    options.z_loss_weight = golden->number("z_coefficient", 0);
    device = make_device(std::get<1>(GetParam()), {.threads = 2});
    ctx = std::make_unique<Context>(*device, log);
    model = std::make_unique<Model>(*ctx, config, options);
    model->set_weights(load_weights(model->table(), config, kFolder + name));
  }

  void expect_gradients() {
    const std::vector<float> flat = model->get_gradients();
    double all = 0;
    int unseen = 0;
    for (const auto& [key, entry] : golden->file().tensors())
      if (key.starts_with("grad.")) {
        all += std::pow(norm_of(golden->floats(key)), 2);
        ++unseen;
      }
    for (const Parameter& row : model->table().rows()) {
      if (!row.trained || row.alias) continue;
      const std::vector<float> want = golden->floats("grad." + row.name);
      ASSERT_EQ(static_cast<int64_t>(want.size()), row.elements()) << row.name;
      std::vector<float> difference(want.size());
      for (size_t i = 0; i < want.size(); ++i)
        difference[i] = flat[static_cast<size_t>(row.offset) + i] - want[i];
      // NUMERICS: |a - b| <= 1e-4 |b| + 1e-7 |all gradients|.
      EXPECT_LE(norm_of(difference), 1e-4 * norm_of(want) + 1e-7 * std::sqrt(all)) << row.name;
      --unseen;
    }
    EXPECT_EQ(unseen, 0) << "gradients that the golden file has and the model lacks";
  }

  void expect_counts() {
    for (const Model::ExpertCounts& layer : model->expert_counts()) {
      const std::string key = "expert_counts." + std::to_string(layer.layer);
      if (!golden->has(key)) continue;
      std::vector<int64_t> got(static_cast<size_t>(config.n_routed_experts));
      copy(*ctx->stream, View(got.data(), DType::kI64, Memory::kHost, {config.n_routed_experts}),
           layer.counts);
      ctx->stream->synchronize("test.counts");
      const std::vector<int32_t> want = golden->ints(key);
      EXPECT_EQ(got, std::vector<int64_t>(want.begin(), want.end())) << key;
    }
  }

  std::unique_ptr<Golden> golden;
  ModelConfig config;
  ModelOptions options;
  Log log;
  std::unique_ptr<Device> device;
  std::unique_ptr<Context> ctx;
  std::unique_ptr<Model> model;
};

TEST_P(GoldenCase, LogitsLossesAndGradients) {
  const Batch batch = batch_of(*golden);
  std::vector<float> logits = model->logits(batch, 0, batch.tokens());
  std::vector<uint8_t> real;
  for (const Place& place : batch.places) real.push_back(place.doc >= 0);
  zero_rows(logits, config.vocab_size, real);
  EXPECT_LE(max_norm_error(logits, golden->floats("logits")), 1e-5);
  for (size_t d = 1; d <= batch.mtp.size(); ++d) {
    std::vector<float> mtp = model->mtp_logits(batch, static_cast<int>(d));
    zero_rows(mtp, config.vocab_size, batch.mtp[d - 1].valid);
    EXPECT_LE(max_norm_error(mtp, golden->floats("mtp_logits." + std::to_string(d))), 1e-5);
  }

  BatchCounts counts;
  counts.add(batch);
  model->begin_step(counts, 1);
  model->run(batch);
  const Losses losses = model->losses();
  const auto expect_near = [](double got, double want, const char* what) {
    EXPECT_LE(std::abs(got - want), 1e-6 * std::abs(want))
        << what << ": " << got << ", not " << want;
  };
  expect_near(losses.loss, golden->number("loss"), "loss");
  for (size_t d = 1; d <= batch.mtp.size(); ++d)
    expect_near(losses.mtp[d - 1], golden->number("mtp_loss." + std::to_string(d)), "mtp loss");
  if (golden->has("balance_loss"))
    expect_near(losses.balance, golden->number("balance_loss"), "balance loss");
  if (golden->has("z_loss")) expect_near(losses.z, golden->number("z_loss"), "z-loss");
  if (golden->has("total_loss"))
    expect_near(losses.total, golden->number("total_loss"), "total loss");
  expect_gradients();
  expect_counts();
}

std::string test_name(const testing::TestParamInfo<GoldenCase::ParamType>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param).substr(0, 3);
}
INSTANTIATE_TEST_SUITE_P(Golden, GoldenCase,
                         testing::Combine(testing::ValuesIn(cases()),
                                          testing::Values("cpu", "emu:64MiB")),
                         test_name);

}  // namespace
}  // namespace rondo

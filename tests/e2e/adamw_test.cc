// Ten steps of AdamW with clipping, warm-up and cosine against torch: tests/golden/adamw.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "model/hub.h"
#include "train/schedule.h"
#include "train/step.h"

namespace rondo {
namespace {

TEST(GoldenAdamW, TenStepsAsTorch) {
  const std::string folder = std::string(RONDO_SOURCE_DIR) + "/tests/golden/adamw";
  const SafetensorsFile golden(folder + "/golden.safetensors");
  const auto read = [&]<class T>(const std::string& key, T) {
    const SafetensorsFile::Entry& entry = golden.tensors().at(key);
    std::vector<T> out(static_cast<size_t>(entry.bytes) / sizeof(T));
    std::memcpy(out.data(), entry.data, static_cast<size_t>(entry.bytes));
    return out;
  };
  std::vector<std::string> warnings;
  const ModelConfig config = load_model_config(folder, warnings);
  for (const char* spec : {"cpu", "emu:64MiB"}) {
    Log log;
    auto device = make_device(spec, {.threads = 2});
    Context ctx(*device, log);
    Model model(ctx, config, {});
    model.set_weights(load_weights(model.table(), config, folder));
    Optimizer optimizer(ctx, model, {.clip_norm = 1});
    const Schedule schedule{
        .learning_rate = 3e-3, .min_ratio = 0.1, .warmup_steps = 3, .steps = 10};
    const auto doc = read("doc", int32_t{}), pos = read("pos", int32_t{});
    const int64_t length = golden.tensors().at("doc").shape[1];
    for (int64_t step = 1; step <= 10; ++step) {
      const std::string s = "." + std::to_string(step - 1);
      Batch batch;
      batch.ids = read("input_ids" + s, int32_t{});
      batch.labels = read("labels" + s, int32_t{});
      for (int64_t i = 0; i < batch.tokens(); ++i)
        batch.places.push_back({static_cast<int32_t>(i / length), static_cast<int32_t>(i % length),
                                doc[static_cast<size_t>(i)], pos[static_cast<size_t>(i)]});
      const double lr = learning_rate(schedule, step);
      EXPECT_NEAR(lr, read("lr" + s, float{})[0], 1e-6 * lr);
      const std::vector<Batch> batches = {batch};
      const StepMetrics m = run_step(ctx, model, optimizer, plain_schedule(1),
                                     {step, lr, 0, batches, BatchCounts::of(batches)});
      const double loss = read("loss" + s, float{})[0], norm = read("grad_norm" + s, float{})[0];
      EXPECT_NEAR(m.losses.loss, loss, 2e-6 * loss) << spec << ", step " << step;
      EXPECT_NEAR(m.grad_norm, norm, 1e-5 * norm) << spec << ", step " << step;
    }
    const std::vector<float> flat = model.get_weights();
    for (const Parameter& row : model.table().rows()) {
      if (!row.trained) continue;
      const std::vector<float> want = read("after." + row.name, float{});
      double difference = 0, size = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        const double d = double(flat[static_cast<size_t>(row.offset) + i]) - want[i];
        difference += d * d;
        size += double(want[i]) * want[i];
      }
      EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(size)) << spec << ", " << row.name;
    }
  }
}

}  // namespace
}  // namespace rondo

#include "train/step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/model_testing.h"
#include "train/guard/guard.h"

namespace rondo {
namespace {

// One document in a sequence of its own.
Batch document(int32_t sample, int32_t length) {
  Batch batch;
  for (int32_t i = 0; i < length; ++i) {
    batch.ids.push_back((sample * 5 + i * i) % 11);
    batch.places.push_back({sample, i, 0, i});
  }
  for (int32_t i = 0; i < length; ++i)
    batch.labels.push_back(i + 1 < length ? batch.ids[i + 1] : kIgnoreLabel);
  make_mtp(batch, 1);
  return batch;
}

class Step : public testing::Test {
 protected:
  Step() {
    for (const Parameter& row : model.table().rows())
      if (!row.trained) biases.push_back(row);
    model.set_weights(initial_values(model.table(), model.config(), 3));
  }

  StepMetrics run(const std::vector<Batch>& batches, double learning_rate, double bias_rate = 0) {
    return run_step(ctx, model, optimizer, plain_schedule(static_cast<int64_t>(batches.size())),
                    {++step, learning_rate, bias_rate, batches, BatchCounts::of(batches)});
  }

  std::vector<int64_t> counts_of(size_t layer) {
    const View counts = model.expert_counts()[layer].counts;
    std::vector<int64_t> out(static_cast<size_t>(counts.elements()));
    copy(*ctx.stream, View(out.data(), DType::kI64, Memory::kHost, {counts.elements()}), counts);
    ctx.stream->synchronize("test.counts");
    return out;
  }

  Log log;
  std::unique_ptr<Device> device = make_device("emu:64MiB", {.threads = 2});
  Context ctx{*device, log};
  Model model{ctx, read_config(kTinyDeepSeek, R"({"initializer_range": 0.3})"), {}};
  Optimizer optimizer{ctx, model, {}};
  std::vector<Parameter> biases;  // of the routers, in the order of layers
  int64_t step = 0;
};

TEST_F(Step, TheNormCountsEveryParameterOnce) {
  const StepMetrics m = run({document(0, 9), document(1, 4)}, 0);
  const std::vector<float> g = model.get_gradients();
  double all = 0;
  for (const Parameter& row : model.table().rows()) {
    if (row.alias) continue;
    double sum = 0;
    for (int64_t i = 0; i < row.elements(); ++i) {
      const double v = g[static_cast<size_t>(row.offset + i)];
      sum += v * v;
    }
    EXPECT_EQ(sum > 0, row.trained) << row.name;  // every expert has tokens here
    all += sum;
  }
  EXPECT_NEAR(m.grad_norm, std::sqrt(all), 1e-6 * m.grad_norm);
}

TEST_F(Step, TheRouterBiasMovesOnceByTheTokensOfAllMicroBatches) {
  constexpr float kRate = 0.125;
  const std::vector<Batch> batches = {document(0, 9), document(1, 4), document(2, 7)};
  BatchCounts counts;
  for (const Batch& batch : batches) counts.add(batch);
  ASSERT_EQ(biases.size(), 2u);  // of a layer and of the MTP layer
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::vector<float> before = model.get_weights();
    run(batches, 1e-2, kRate);
    const std::vector<float> after = model.get_weights();
    for (size_t layer = 0; layer < 2; ++layer) {
      const std::vector<int64_t> tokens = counts_of(layer);
      int64_t sum = 0;
      for (const int64_t n : tokens) sum += n;
      EXPECT_EQ(sum, 2 * (layer == 0 ? counts.tokens : counts.mtp_tokens[0]));
      for (size_t e = 0; e < tokens.size(); ++e) {
        const size_t at = static_cast<size_t>(biases[layer].offset) + e;
        const int64_t above = sum - tokens[e] * static_cast<int64_t>(tokens.size());
        EXPECT_EQ(after[at] - before[at], above > 0   ? kRate
                                          : above < 0 ? -kRate
                                                      : 0)
            << "expert " << e << " with " << tokens[e] << " of " << sum;
      }
    }
  }
}

TEST_F(Step, AFailedStepLeavesTheWeights) {
  std::vector<float> weights = model.get_weights();
  weights[static_cast<size_t>(
      model.table().find("model.layers.1.self_attn.o_proj.weight")->offset)] = std::nanf("");
  model.set_weights(weights);
  try {
    run({document(0, 9)}, 1e-2, 0.125);
    FAIL() << "a NaN went through";
  } catch (const RunFailure& failure) {
    EXPECT_EQ(std::string(failure.what()),
              "step 1: loss nan, gradient norm nan; first bad tensor: layer 1, "
              "model.layers.1.self_attn.o_proj.weight");
  }
  const std::vector<float> after = model.get_weights();
  for (size_t i = 0; i < weights.size(); ++i)
    ASSERT_TRUE(after[i] == weights[i] || (std::isnan(after[i]) && std::isnan(weights[i])));
}

}  // namespace
}  // namespace rondo

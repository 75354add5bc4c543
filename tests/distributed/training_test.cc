// Training steps on many ranks are those of one rank: data and context axes, any placement.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "base/random.h"
#include "comm/inproc/inproc.h"
#include "train/step.h"

namespace rondo::testing {
namespace {

constexpr int kSteps = 3;

struct Layout {
  int data = 1, context = 1;
  int stripe = 1;  // tokens that stay together: of token t the rank is t / stripe % context
  int64_t micro_batch = 1;  // samples of one data rank at once
  const char* device = "cpu";
  int expert = 1;
  int64_t wave_tokens = 0;
  int ranks() const { return data * context; }
};

struct Outcome {
  std::vector<double> losses, norms;
  std::vector<float> gradients, weights;  // of the first step, after the last
  std::vector<double> parts;              // mtp, balance and z of every step
};

ModelConfig config_of(const std::string& folder) {
  std::vector<std::string> warnings;
  return load_model_config(std::string(RONDO_SOURCE_DIR) + "/" + folder, warnings);
}

// Packed documents of awkward lengths with padding, one sample of 48 tokens each.
Batch samples(int64_t first, int64_t count, const ModelConfig& config) {
  static const std::vector<std::vector<int>> kLengths = {
      {48}, {1, 20, 27}, {30, -18}, {5, 5, 5, 5, 28}, {47, 1}, {-48}, {13, 17, -1, 17}, {2, 46}};
  Batch batch;
  int32_t doc = 0;
  for (int64_t s = first; s < first + count; ++s) {
    int32_t offset = 0;
    for (const int length : kLengths[static_cast<size_t>(s) % kLengths.size()])
      for (int pos = 0; pos < std::abs(length); ++pos, ++offset) {
        const auto id = [&](int ahead) {
          return static_cast<int32_t>(philox({7, RandomUse::kTest}, static_cast<uint64_t>(s),
                                             static_cast<uint64_t>(offset + ahead))[0] %
                                      static_cast<uint32_t>(config.vocab_size));
        };
        const bool real = length > 0, last = pos + 1 == length;
        batch.ids.push_back(real ? id(0) : 0);
        batch.labels.push_back(real && !last && offset % 7 != 3 ? id(1) : kIgnoreLabel);
        batch.places.push_back({static_cast<int32_t>(s), offset, real ? doc : -1, real ? pos : 0});
        if (last && real) ++doc;
      }
  }
  make_mtp(batch, static_cast<int>(config.num_nextn_predict_layers));
  return batch;
}

Outcome run_layout(const ModelConfig& config, const Layout& layout) {
  constexpr int64_t kSamples = 8;
  Outcome out;
  std::mutex mutex;
  const ParameterTable whole_table = ParameterTable::build(config);
  run_ranks(layout.ranks(), [&](std::unique_ptr<Channel> channel) {
    Log log;
    const auto device = make_device(layout.device, {});
    const auto world = make_communicator(*device, std::move(channel));
    const int rank = world->rank(), data_rank = rank / layout.context;
    const auto data = world->split(rank % layout.context, data_rank);
    const auto context = world->split(data_rank, rank);
    const auto expert = world->split(rank / layout.expert, rank);
    const auto expert_data = world->split(rank % layout.expert, rank);
    Context ctx(*device, log, rank, world->size());
    failing_together(*world, [&] {
      RankGroups groups{world.get(), data.get(), context.get()};
      if (layout.expert > 1) {
        groups.expert = expert.get();
        groups.expert_data = expert_data.get();
        groups.wave_tokens = layout.wave_tokens;
      }
      Model model(ctx, config,
                  {.mtp_loss_weight = 0.3,
                   .balance_loss_weight = 0.01,
                   .z_loss_weight = 0.001,
                   .dropout = 0.1,
                   .attention_dropout = 0.1,
                   .seed = 5},
                  groups);
      Optimizer optimizer(ctx, model, {});
      model.set_weights(initial_values(model.table(), config, 5));
      for (int step = 1; step <= kSteps; ++step) {
        BatchCounts counts;
        for (int64_t s = 0; s < kSamples; ++s) counts.add(samples(s, 1, config));
        std::vector<Batch> batches;
        const int64_t mine = kSamples / layout.data;
        for (int64_t s = 0; s < mine; s += layout.micro_batch) {
          const Batch whole = samples(data_rank * mine + s, layout.micro_batch, config);
          std::vector<std::vector<int64_t>> rows(static_cast<size_t>(layout.context));
          for (int64_t t = 0; t < whole.tokens(); ++t)
            rows[static_cast<size_t>(t / layout.stripe % layout.context)].push_back(t);
          batches.push_back(part_of(whole, rows, context->rank(), config.sliding_window));
        }
        const StepMetrics m =
            run_step(ctx, model, optimizer, plain_schedule(static_cast<int64_t>(batches.size())),
                     {step, 2e-3, 0.01, batches, counts});
        const std::vector<float> gradients = model.get_gradients();
        if (step == 1) {
          const std::lock_guard lock(mutex);
          out.gradients.resize(static_cast<size_t>(whole_table.flat_elements()));
          copy_rows(model.table(), gradients, whole_table, out.gradients);
        }
        if (rank != 0) continue;
        out.losses.push_back(m.losses.total);
        out.norms.push_back(m.grad_norm);
        out.parts.insert(out.parts.end(), m.losses.mtp.begin(), m.losses.mtp.end());
        out.parts.push_back(m.losses.balance);
        out.parts.push_back(m.losses.z);
      }
      const std::vector<float> weights = model.get_weights();
      const std::lock_guard lock(mutex);
      out.weights.resize(static_cast<size_t>(whole_table.flat_elements()));
      copy_rows(model.table(), weights, whole_table, out.weights);
    });
  });
  return out;
}

double norm_of(const std::vector<float>& x, int64_t begin, int64_t n) {
  double sum = 0;
  for (int64_t i = begin; i < begin + n; ++i) {
    const double v = x[static_cast<size_t>(i)];
    sum += v * v;
  }
  return std::sqrt(sum);
}

void expect_same(const ModelConfig& config, const Outcome& got, const Outcome& want) {
  const double tolerance[kSteps] = {1e-5, 1e-4, 1e-3};
  for (size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance[i] * want.losses[i]) << "step " << i + 1;
    EXPECT_NEAR(got.norms[i], want.norms[i], tolerance[i] * want.norms[i]) << "step " << i + 1;
  }
  ASSERT_EQ(got.parts.size(), want.parts.size());
  for (size_t i = 0; i < got.parts.size(); ++i)
    EXPECT_NEAR(got.parts[i], want.parts[i], 1e-3 * std::abs(want.parts[i])) << "part " << i;
  std::vector<float> difference(want.gradients.size());
  for (size_t i = 0; i < difference.size(); ++i)
    difference[i] = got.gradients[i] - want.gradients[i];
  const double all = norm_of(want.gradients, 0, static_cast<int64_t>(want.gradients.size()));
  const ParameterTable table = ParameterTable::build(config);
  for (const Parameter& row : table.rows()) {
    if (row.alias) continue;
    const double size = norm_of(want.gradients, row.offset, row.elements());
    EXPECT_LE(norm_of(difference, row.offset, row.elements()), 1e-4 * size + 1e-7 * all)
        << row.name;
  }
}

const Layout kLayouts[] = {
    {1, 1, 1, 4},  // micro-batch size
    {1, 2, 24},    // contiguous
    {1, 2, 1},     // striped
    {1, 4, 6, 2},  // stripes of 6, two samples at once
    {1, 3, 16},    // uneven work
    {1, 8, 6},     // small shards
    {1, 5, 60},    // ranks without tokens
    {2, 1, 1},     // data alone
    {4, 2, 5, 2},  // both
    {2, 2, 7, 1, "emu:64MiB"},
    {2, 1, 1, 1, "cpu", 2},         // experts over the data axis
    {1, 2, 5, 2, "cpu", 2},         // over the context axis
    {2, 2, 7, 1, "cpu", 4, 192},    // over both, in small waves
    {4, 2, 5, 2, "cpu", 2},         // with four replicas of each expert
    {4, 2, 60, 2, "emu:64MiB", 4},  // and ranks without tokens
    {1, 3, 16, 2, "cpu", 3},        // 3 does not divide the 8 experts
};

TEST(Training, AnyLayoutIsOneRank) {
  for (const char* folder : {"configs/tiny", "tests/golden/qwen3_moe", "tests/golden/ds_tied"}) {
    const ModelConfig config = config_of(folder);
    const Outcome want = run_layout(config, {});
    for (const Layout& layout : kLayouts) {
      SCOPED_TRACE(std::string(folder) + ": data " + std::to_string(layout.data) + ", context " +
                   std::to_string(layout.context) + ", stripes of " +
                   std::to_string(layout.stripe) + ", expert " + std::to_string(layout.expert) +
                   ", " + layout.device);
      expect_same(config, run_layout(config, layout), want);
    }
  }
}

TEST(Training, SameLayoutSameBits) {
  const ModelConfig config = config_of("configs/tiny");
  const Layout layout{2, 2, 7};
  const Outcome a = run_layout(config, layout), b = run_layout(config, layout);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.losses, b.losses);
}

}  // namespace
}  // namespace rondo::testing

// What must hold of any model, on small ones: who sees whom, what takes no part, how a step adds
// up. The emulated device fills its memory with NaN, so nothing is read that nobody wrote.
#include "model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/random.h"
#include "model/model_testing.h"

namespace rondo {
namespace {

constexpr const char* kDeepSeek = R"({"initializer_range": 0.3})";
constexpr const char* kQwen =
    R"({"initializer_range": 0.3, "use_sliding_window": true, "sliding_window": 2})";

// Samples, each of documents of these lengths; a negative length is that much padding.
using Lengths = std::vector<std::vector<int>>;

// Ids follow from sample, document and pos, so padding between documents changes none. Labels are
// the next ids, some of them ignored.
Batch batch_of(const Lengths& samples, int depths, int first_sample = 0) {
  Batch batch;
  int32_t doc = 0;
  for (size_t s = 0; s < samples.size(); ++s) {
    const int32_t sample = first_sample + static_cast<int32_t>(s);
    int32_t offset = 0, in_sample = 0;
    for (const int length : samples[s]) {
      const uint64_t key = static_cast<uint64_t>(sample) * 100 + static_cast<uint64_t>(in_sample);
      const auto id = [&](int pos) {
        return static_cast<int32_t>(philox({3}, key, static_cast<uint64_t>(pos))[0] % 11);
      };
      for (int pos = 0; pos < std::abs(length); ++pos) {
        const bool real = length > 0, last = pos + 1 == length;
        batch.ids.push_back(real ? id(pos) : 0);
        batch.labels.push_back(real && !last && id(pos) != 4 ? id(pos + 1) : kIgnoreLabel);
        batch.places.push_back({sample, offset++, real ? doc : -1, real ? pos : 0});
      }
      if (length <= 0) continue;
      ++doc;
      ++in_sample;
    }
  }
  make_mtp(batch, depths);
  return batch;
}

// What a step leaves behind.
struct Outcome {
  Losses losses;
  std::vector<float> gradients;
  std::vector<std::vector<int64_t>> counts;  // tokens of each expert, of each routed layer
};

class TestModel {
 public:
  explicit TestModel(const ModelConfig& config, const ModelOptions& options = {})
      : device_(make_device("emu:64MiB", {.threads = 2})),
        ctx_(*device_, log_),
        model(ctx_, config, options),
        weights(initial_values(model.table(), config, 5)) {
    for (const Parameter& row : model.table().rows())
      if (!row.trained)  // the router's bias: not all the same
        for (int64_t i = 0; i < row.elements(); ++i) at(row.name, i) = 0.02f * (i % 3);
    model.set_weights(weights);
  }

  // An element of a weight on the host; model.set_weights(weights) puts it to use.
  float& at(const std::string& name, int64_t i) {
    const Parameter* row = model.table().find(name);
    RONDO_CHECK(row && i < row->elements(), "{}[{}]", name, i);
    return weights[static_cast<size_t>(row->offset + i)];
  }

  Outcome step(const std::vector<Batch>& batches, int64_t step = 1,
               Model::Mode mode = Model::Mode::kTrain) {
    BatchCounts all;
    for (const Batch& batch : batches) all.add(batch);
    model.begin_step(all, step, mode);
    for (const Batch& batch : batches) model.run(batch);
    Outcome out{model.losses(), model.get_gradients(), {}};
    for (const Model::ExpertCounts& layer : model.expert_counts()) {
      out.counts.emplace_back(static_cast<size_t>(layer.counts.elements()));
      copy(*ctx_.stream,
           View(out.counts.back().data(), DType::kI64, Memory::kHost, {layer.counts.elements()}),
           layer.counts);
    }
    ctx_.stream->synchronize("test.counts");
    return out;
  }

  // Logits of each row.
  std::vector<std::vector<float>> logits(const Batch& batch) {
    const std::vector<float> all = model.logits(batch, 0, batch.tokens());
    const auto vocab = model.config().vocab_size;
    std::vector<std::vector<float>> out;
    for (int64_t t = 0; t < batch.tokens(); ++t)
      out.emplace_back(all.begin() + t * vocab, all.begin() + (t + 1) * vocab);
    return out;
  }

 private:
  Log log_;
  std::unique_ptr<Device> device_;
  Context ctx_;

 public:
  Model model;
  std::vector<float> weights;
};

double norm_of(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += double(v) * v;
  return std::sqrt(sum);
}

// |a - b| / |b|; infinite where a holds NaN.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> d(b.size());
  for (size_t i = 0; i < b.size(); ++i) d[i] = a.at(i) - b[i];
  const double out = norm_of(d) / norm_of(b);
  return std::isfinite(out) ? out : std::numeric_limits<double>::infinity();
}

void expect_same(const Outcome& got, const Outcome& want, double tolerance) {
  const auto near = [&](double a, double b, const char* what) {
    EXPECT_LE(std::abs(a - b), tolerance * std::abs(b)) << what << ": " << a << ", not " << b;
  };
  near(got.losses.loss, want.losses.loss, "loss");
  near(got.losses.balance, want.losses.balance, "balance loss");
  near(got.losses.z, want.losses.z, "z-loss");
  near(got.losses.total, want.losses.total, "total loss");
  for (size_t d = 0; d < want.losses.mtp.size(); ++d)
    near(got.losses.mtp.at(d), want.losses.mtp[d], "mtp loss");
  EXPECT_LE(difference(got.gradients, want.gradients), tolerance);
  EXPECT_EQ(got.counts, want.counts);
}

void expect_nothing(const Outcome& got) {
  EXPECT_EQ(got.losses.loss, 0);
  EXPECT_EQ(got.losses.total, 0);
  for (const double mtp : got.losses.mtp) EXPECT_EQ(mtp, 0);
  EXPECT_EQ(std::count(got.gradients.begin(), got.gradients.end(), 0.f),
            static_cast<int64_t>(got.gradients.size()));
}

void ignore_labels(Batch& batch, int32_t but_of_doc = -1) {
  for (size_t i = 0; i < batch.places.size(); ++i) {
    if (but_of_doc >= 0 && batch.places[i].doc == but_of_doc) continue;
    batch.labels[i] = kIgnoreLabel;
    for (Batch::Mtp& mtp : batch.mtp) mtp.labels[i] = kIgnoreLabel;
  }
}

class AnyModel : public testing::TestWithParam<const char*> {
 protected:
  ModelConfig config() const {
    return deepseek() ? read_config(kTinyDeepSeek, kDeepSeek) : read_config(kTinyQwen, kQwen);
  }
  bool deepseek() const { return GetParam() == std::string("deepseek"); }
  int depths() const { return deepseek() ? 1 : 0; }
  // With losses of the router that are not small beside the rest.
  ModelOptions all_losses() const { return {.balance_loss_weight = 0.5, .z_loss_weight = 0.1}; }
};

TEST_P(AnyModel, DocumentsDoNotSeeEachOther) {
  TestModel m(config());
  const Batch batch = batch_of({{5, 4, 3}, {1, 6}}, depths());
  for (int32_t doc = 0; doc < 5; ++doc) {
    Batch other = batch;
    for (int64_t t = 0; t < batch.tokens(); ++t)
      if (batch.places[t].doc == doc) other.ids[t] = (batch.ids[t] + 1 + t % 3) % 11;
    other.mtp.clear();
    make_mtp(other, depths());
    const auto a = m.logits(batch), b = m.logits(other);
    for (int64_t t = 0; t < batch.tokens(); ++t) {
      if (batch.places[t].doc == doc) continue;
      ASSERT_EQ(a[t], b[t]) << "document " << batch.places[t].doc << " sees document " << doc;
    }
    // Loss and gradients of another document alone.
    const int32_t watched = doc == 1 ? 2 : 1;
    Batch first = batch, second = other;
    ignore_labels(first, watched);
    ignore_labels(second, watched);
    const Outcome x = m.step({first}), y = m.step({second});
    EXPECT_GT(x.losses.loss, 0);
    EXPECT_EQ(x.losses.loss, y.losses.loss);
    EXPECT_EQ(x.losses.mtp, y.losses.mtp);
    EXPECT_LE(difference(y.gradients, x.gradients), 1e-6);
  }
}

// A token is seen from its own row on: to the end of its document, or as far as the window of each
// layer carries it.
TEST_P(AnyModel, ATokenIsSeenFromBehindAsFarAsTheWindowsReach) {
  TestModel m(config());
  const Batch batch = batch_of({{4, 9}}, 0);
  const int64_t window = m.model.config().sliding_window, layers = 2;
  const int64_t reach = window > 0 ? layers * (window - 1) : 9;
  for (int64_t changed = 4; changed < 13; ++changed) {
    Batch other = batch;
    other.ids[changed] = (batch.ids[changed] + 1) % 11;
    const auto a = m.logits(batch), b = m.logits(other);
    for (int64_t t = 0; t < 13; ++t)
      EXPECT_EQ(a[t] != b[t], t >= changed && t <= changed + reach)
          << "row " << t << ", changed " << changed;
  }
}

TEST_P(AnyModel, PaddingChangesNothing) {
  TestModel m(config(), all_losses());
  const Batch bare = batch_of({{5, 4}, {1, 6}}, depths());
  const Batch padded = batch_of({{5, -2, 4, -3}, {-1, 1, 6}, {-7}}, depths());
  const auto want = m.logits(bare), got = m.logits(padded);
  size_t row = 0;
  for (size_t t = 0; t < got.size(); ++t)
    if (padded.places[t].doc >= 0) {
      EXPECT_EQ(got[t], want.at(row++));
    }
  expect_same(m.step({padded}), m.step({bare}), 1e-6);
  // A micro-batch of nothing else, as a rank without tokens has.
  const Batch nothing = batch_of({{-4}}, depths());
  const Outcome alone = m.step({bare}), with = m.step({nothing, bare, nothing});
  expect_same(with, alone, 0);
  const Outcome none = m.step({nothing});
  expect_nothing(none);
  for (const auto& layer : none.counts)
    EXPECT_EQ(std::count(layer.begin(), layer.end(), 0), static_cast<int64_t>(layer.size()));
}

TEST_P(AnyModel, WithoutLabelsLossAndGradientsAreZero) {
  TestModel m(config());
  Batch batch = batch_of({{5, 4}, {1, 6}}, depths());
  ignore_labels(batch);
  expect_nothing(m.step({batch}));
}

TEST_P(AnyModel, MicroBatchesChangeNothing) {
  TestModel m(config(), all_losses());
  // Far from equal numbers of tokens and labels.
  const Lengths samples = {{9, 3}, {2}, {1, 1, 4}, {12, 5}};
  std::vector<Batch> each;
  for (int i = 0; i < 4; ++i) each.push_back(batch_of({samples[i]}, depths(), i));
  expect_same(m.step(each), m.step({batch_of(samples, depths())}), 1e-5);
}

// Places decide, never row numbers: a rank may hold any tokens in any order.
TEST_P(AnyModel, RowsMayStandInAnyOrder) {
  TestModel m(config(), all_losses());
  const Batch batch = batch_of({{7, 5, -2}, {1, 6}}, depths());
  std::vector<size_t> order(batch.ids.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i * 8 % order.size();
  ASSERT_EQ(std::set<size_t>(order.begin(), order.end()).size(), order.size());
  Batch mixed = batch;
  for (size_t i = 0; i < order.size(); ++i) {
    mixed.ids[i] = batch.ids[order[i]];
    mixed.labels[i] = batch.labels[order[i]];
    mixed.places[i] = batch.places[order[i]];
    for (size_t d = 0; d < batch.mtp.size(); ++d) {
      mixed.mtp[d].ids[i] = batch.mtp[d].ids[order[i]];
      mixed.mtp[d].labels[i] = batch.mtp[d].labels[order[i]];
      mixed.mtp[d].valid[i] = batch.mtp[d].valid[order[i]];
    }
  }
  const auto want = m.logits(batch), got = m.logits(mixed);
  for (size_t i = 0; i < order.size(); ++i)
    if (mixed.places[i].doc >= 0) {
      EXPECT_LE(difference(got[i], want[order[i]]), 1e-5);
    }
  expect_same(m.step({mixed}), m.step({batch}), 1e-5);
}

TEST_P(AnyModel, DropoutDoesNotDependOnMicroBatches) {
  const Lengths samples = {{9, 3}, {2, 5}, {6}};
  std::vector<Batch> each;
  for (int i = 0; i < 3; ++i) each.push_back(batch_of({samples[i]}, depths(), i));
  const std::vector<Batch> whole = {batch_of(samples, depths())};
  const double dry = TestModel(config()).step(whole).losses.loss;
  for (const auto& [sums, probabilities] :
       {std::pair{0.3, 0.0}, std::pair{0.0, 0.3}, std::pair{0.2, 0.4}}) {
    TestModel m(config(), {.dropout = sums, .attention_dropout = probabilities, .seed = 9});
    const Outcome got = m.step(whole);
    expect_same(m.step(each), got, 1e-5);
    EXPECT_NE(got.losses.loss, dry);
    EXPECT_NE(got.losses.loss, m.step(whole, 2).losses.loss);
    EXPECT_EQ(dry, m.step(whole, 1, Model::Mode::kEvaluate).losses.loss);
  }
}

// Along the gradient g the loss rises by |g|: forward and backward are of one function, with
// dropout and every loss switched on.
TEST_P(AnyModel, TheLossRisesAlongItsGradient) {
  ModelOptions options = all_losses();
  options.dropout = 0.3;
  options.attention_dropout = 0.3;
  TestModel m(config(), options);
  const std::vector<Batch> batches = {batch_of({{9, 3, -1}, {2, 5}}, depths())};
  const std::vector<float> g = m.step(batches).gradients;
  const double norm = norm_of(g), h = 1e-4;
  const auto loss_at = [&](double distance) {
    std::vector<float> moved = m.weights;
    for (size_t i = 0; i < moved.size(); ++i)
      moved[i] += static_cast<float>(distance * g[i] / norm);
    m.model.set_weights(moved);
    return m.step(batches).losses.total;
  };
  EXPECT_NEAR((loss_at(h) - loss_at(-h)) / (2 * h), norm, 5e-3 * norm);
}

TEST_P(AnyModel, AStepBeginsAnew) {
  TestModel m(config(), all_losses());
  const std::vector<Batch> batches = {batch_of({{9, 3}}, depths()),
                                      batch_of({{2, 5}}, depths(), 1)};
  const Outcome first = m.step(batches);
  const Outcome evaluated = m.step({batch_of({{4}}, depths())}, 1, Model::Mode::kEvaluate);
  EXPECT_EQ(evaluated.gradients, first.gradients);  // untouched
  const Outcome again = m.step(batches);
  EXPECT_EQ(again.gradients, first.gradients);
  EXPECT_EQ(again.counts, first.counts);
  EXPECT_EQ(again.losses.total, first.losses.total);
  // Every copy of every token went to one expert, once.
  BatchCounts counts;
  for (const Batch& batch : batches) counts.add(batch);
  const int64_t k = m.model.config().num_experts_per_tok;
  for (size_t i = 0; i < first.counts.size(); ++i) {
    const bool mtp = m.model.expert_counts()[i].layer >= m.model.config().num_hidden_layers;
    int64_t sum = 0;
    for (const int64_t n : first.counts[i]) sum += n;
    EXPECT_EQ(sum, k * (mtp ? counts.mtp_tokens[0] : counts.tokens));
  }
}

INSTANTIATE_TEST_SUITE_P(Model, AnyModel, testing::Values("deepseek", "qwen"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Model, TheFirstBadTensorIsNamed) {
  TestModel m(read_config(kTinyDeepSeek, kDeepSeek));
  const Batch batch = batch_of({{5, 4}}, 1);
  const auto first = [&](const std::vector<std::pair<std::string, float>>& bad) {
    const std::vector<float> good = m.weights;
    for (const auto& [name, value] : bad) m.at(name, 1) = value;
    m.model.set_weights(m.weights);
    m.weights = good;
    m.step({batch});
    return m.model.first_nonfinite(batch);
  };
  EXPECT_EQ(first({}), "");
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (const auto& [place, name] :
       {std::pair{"embedding", "model.embed_tokens.weight"},
        {"layer 0", "model.layers.0.self_attn.kv_a_layernorm.weight"},
        {"layer 0", "model.layers.0.mlp.up_proj.weight"},
        {"layer 1", "model.layers.1.self_attn.q_b_proj.weight"},
        {"layer 1", "model.layers.1.mlp.gate.weight"},
        {"layer 1", "model.layers.1.mlp.gate.e_score_correction_bias"},
        {"layer 1", "model.layers.1.mlp.experts.3.down_proj.weight"},
        {"layer 2", "model.layers.2.eh_proj.weight"},
        {"layer 2", "model.layers.2.mlp.shared_experts.gate_proj.weight"},
        {"output head", "model.norm.weight"},
        {"output head", "lm_head.weight"}})
    for (const float bad : {nan, inf, -inf})
      EXPECT_EQ(first({{name, bad}}), std::string(place) + ", " + name) << bad;
  EXPECT_EQ(first({{"lm_head.weight", nan}, {"model.layers.1.mlp.experts.0.up_proj.weight", inf}}),
            "layer 1, model.layers.1.mlp.experts.0.up_proj.weight");
  // Finite weights whose products are not.
  EXPECT_EQ(first({{"model.layers.0.mlp.down_proj.weight", 3e38f},
                   {"model.layers.0.mlp.gate_proj.weight", 3e38f},
                   {"model.layers.0.mlp.up_proj.weight", 3e38f}}),
            "layer 0, after feed-forward");
}

}  // namespace
}  // namespace rondo

#include "train/data/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "train/data/test_dataset.h"

namespace rondo {
namespace {

std::vector<Corpus> corpora(const TestFolder& folder, const std::vector<int>& documents) {
  std::vector<Corpus> out;
  SequenceLayout layout;
  layout.sequence_length = 8;
  layout.vocab_size = 100;
  for (size_t i = 0; i < documents.size(); ++i) {
    // One document a sequence: eod, six tokens, eod.
    Documents all;
    for (int d = 0; d < documents[i]; ++d) {
      all.emplace_back(6, static_cast<int32_t>(1 + i));
      all.back()[0] = static_cast<int32_t>(10 + d % 90);
      all.back().push_back(0);
    }
    const std::string name = "corpus" + std::to_string(i);
    out.emplace_back(write_dataset(folder, name, all, 0), layout, [](const std::string&) {});
  }
  return out;
}

TEST(Sampler, AnEpochIsEverySequenceOnceInANewOrder) {
  const TestFolder folder;
  const Sampler sampler(corpora(folder, {50}), {}, 5);
  EXPECT_EQ(sampler.sequences(), 50);
  std::vector<std::vector<int64_t>> epochs(3);
  for (int64_t g = 0; g < 150; ++g) {
    const Sampler::Choice choice = sampler.choose(g);
    EXPECT_EQ(choice.epoch, g / 50);
    epochs[choice.epoch].push_back(choice.sequence);
  }
  for (const auto& epoch : epochs)
    EXPECT_EQ(std::set<int64_t>(epoch.begin(), epoch.end()).size(), 50u);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_NE(Sampler(corpora(folder, {50}), {}, 6).choose(0).sequence * 1000 +
                Sampler(corpora(folder, {50}), {}, 6).choose(1).sequence,
            epochs[0][0] * 1000 + epochs[0][1]);
}

TEST(Sampler, EachCorpusHasItsShareAtAnyTimeAndItsOwnOrder) {
  const TestFolder folder;
  for (const std::vector<double>& weights :
       {std::vector<double>{}, {1, 1, 1}, {0.7, 0.2, 0.1}, {1, 1e-3, 5}, {1e-12, 1, 1}}) {
    const Sampler sampler(corpora(folder, {40, 7, 13}), weights, 1);
    std::vector<double> shares = weights.empty() ? std::vector<double>{40, 7, 13} : weights;
    const double sum = shares[0] + shares[1] + shares[2];
    std::vector<int64_t> taken(3);
    std::vector<std::set<int64_t>> seen(3);
    for (int64_t g = 0; g < 3000; ++g) {
      const Sampler::Choice choice = sampler.choose(g);
      const int64_t sequences = sampler.corpora()[choice.corpus].sequences();
      ASSERT_EQ(choice.epoch, taken[choice.corpus] / sequences);
      if (taken[choice.corpus]++ % sequences == 0) seen[choice.corpus].clear();
      ASSERT_TRUE(seen[choice.corpus].insert(choice.sequence).second) << "twice in an epoch";
      for (size_t i = 0; i < 3; ++i)
        ASSERT_LT(
            std::abs(static_cast<double>(taken[i]) - static_cast<double>(g + 1) * shares[i] / sum),
            2)
            << "corpus " << i << " after " << g;
    }
  }
}

TEST(Sampler, FarSamplesAreReachedAtOnce) {
  const TestFolder folder;
  const Sampler sampler(corpora(folder, {40, 7}), {0.75, 0.25}, 1);
  const Sampler::Choice choice = sampler.choose(int64_t{1} << 60);
  EXPECT_GT(choice.epoch, int64_t{1} << 50);
}

TEST(Sampler, ABatchIsTheSameHoweverTheRunIsCut) {
  const TestFolder folder;
  const Sampler sampler(corpora(folder, {9, 4}), {2, 1}, 3);
  const Batch whole = sampler.make_batch(100, 6, 2);
  ASSERT_EQ(whole.tokens(), 48);
  ASSERT_EQ(whole.mtp.size(), 2u);
  const Sampler resumed(corpora(folder, {9, 4}), {2, 1}, 3);
  for (int64_t i = 0; i < 6; ++i) {
    const Batch one = resumed.make_batch(100 + i, 1, 2);
    for (int64_t t = 0; t < 8; ++t) {
      EXPECT_EQ(one.ids[t], whole.ids[i * 8 + t]);
      EXPECT_EQ(one.labels[t], whole.labels[i * 8 + t]);
      EXPECT_EQ(one.mtp[1].labels[t], whole.mtp[1].labels[i * 8 + t]);
      EXPECT_EQ(whole.places[i * 8 + t].sample, 100 + i);
      EXPECT_EQ(whole.places[i * 8 + t].doc, i) << "unique within the micro-batch";
      EXPECT_EQ(one.places[t].doc, 0);
    }
  }
}

TEST(Sampler, FingerprintSeesAllThatDecidesTheSamples) {
  const TestFolder folder;
  const auto print = [&](const std::vector<int>& sizes, const std::vector<double>& weights,
                         uint64_t seed) {
    return Sampler(corpora(folder, sizes), weights, seed).fingerprint();
  };
  const uint64_t first = print({9, 4}, {2, 1}, 3);
  EXPECT_EQ(print({9, 4}, {4, 2}, 3), first);
  EXPECT_NE(print({9, 4}, {1, 2}, 3), first);
  EXPECT_NE(print({9, 4}, {2, 1}, 4), first);
  EXPECT_NE(print({9, 5}, {2, 1}, 3), first);
}

}  // namespace
}  // namespace rondo

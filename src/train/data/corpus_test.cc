#include "train/data/corpus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "train/data/evaluation.h"
#include "train/data/test_dataset.h"

namespace rondo {
namespace {

constexpr int32_t kX = kIgnoreLabel;
using Ints = std::vector<int32_t>;

void no_warning(const std::string& text) {
  ADD_FAILURE() << text;
}

SequenceLayout layout(int64_t length, int64_t overlap = 0) {
  SequenceLayout out;
  out.sequence_length = length;
  out.vocab_size = 100;
  out.overlap = overlap;
  return out;
}

Batch all_of(const Corpus& corpus) {
  Batch batch;
  int32_t doc = 0;
  for (int64_t s = 0; s < corpus.sequences(); ++s) corpus.append(s, 70 + s, &doc, batch);
  return batch;
}

Ints column(const Batch& batch, int32_t Place::*member) {
  Ints out;
  for (const Place& place : batch.places) out.push_back(place.*member);
  return out;
}

TEST(Corpus, LaysOutAndCutsDocuments) {
  const TestFolder folder;
  const Corpus corpus(write_dataset(folder, "d", {{1, 2, 3, 9}, {4, 9}, {5, 9}}, 9), layout(6),
                      no_warning);
  EXPECT_EQ(corpus.sequences(), 2);
  const Batch batch = all_of(corpus);
  EXPECT_EQ(batch.ids, (Ints{9, 1, 2, 3, 9, 9, 4, 9, 9, 5, 9, 0}));
  EXPECT_EQ(batch.labels, (Ints{1, 2, 3, 9, kX, 4, 9, kX, 5, 9, kX, kX}));
  EXPECT_EQ(column(batch, &Place::sample), (Ints{70, 70, 70, 70, 70, 70, 71, 71, 71, 71, 71, 71}));
  EXPECT_EQ(column(batch, &Place::offset), (Ints{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(column(batch, &Place::doc), (Ints{0, 0, 0, 0, 0, 1, 2, 2, 3, 3, 3, -1}));
  EXPECT_EQ(column(batch, &Place::pos), (Ints{0, 1, 2, 3, 4, 0, 0, 1, 0, 1, 2, 0}));
}

TEST(Corpus, WithoutAnEodDocumentsStandAsTheyAre) {
  const TestFolder folder;
  const std::string prefix = write_dataset(folder, "d", {{1, 2, 3}, {}, {4}, {5, 6}});
  std::vector<std::string> warnings;
  const Corpus corpus(prefix, layout(4),
                      [&](const std::string& text) { warnings.push_back(text); });
  EXPECT_EQ(warnings, std::vector<std::string>{prefix + ": no " + prefix +
                                               ".json and no data.eod_id, so the first token of "
                                               "each document is not predicted"});
  const Batch batch = all_of(corpus);
  EXPECT_EQ(batch.ids, (Ints{1, 2, 3, 4, 5, 6, 0, 0}));
  EXPECT_EQ(batch.labels, (Ints{2, 3, kX, kX, 6, kX, kX, kX}));
  EXPECT_EQ(column(batch, &Place::doc), (Ints{0, 0, 0, 1, 2, 2, -1, -1}));
  EXPECT_EQ(corpus.predicted_tokens(), 3);
  SequenceLayout with_eod = layout(4);
  with_eod.eod_id = 7;
  EXPECT_EQ(all_of(Corpus(prefix, with_eod, no_warning)).ids,
            (Ints{7, 1, 2, 3, 7, 7, 4, 7, 5, 6, 0, 0}));
}

// What must hold of any documents, any length, with and without leading eods and overlap.
TEST(Corpus, EveryTokenIsPredictedOnceFromTheOneBeforeIt) {
  const TestFolder folder;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const auto dice = philox({seed}, 99, 0);
    Documents documents = any_documents(seed, 12, 30);
    if (seed % 5 == 0) documents.insert(documents.begin() + dice[3] % documents.size(), Ints{});
    const bool start = seed % 3 != 0;
    const int64_t length = 1 + dice[0] % 40, overlap = seed % 2 ? dice[1] % length : 0;
    SequenceLayout shape = layout(length, overlap);
    shape.document_start = start;
    const Corpus corpus(write_dataset(folder, "d", documents, 0, 1 + dice[2] % 9), shape,
                        no_warning);
    const Batch batch = all_of(corpus);
    ASSERT_EQ(batch.tokens(), corpus.sequences() * length);

    // (token before or eod, label) of each pair, by the plain rule.
    std::vector<std::pair<int32_t, int32_t>> expected, got;
    for (const auto& document : documents)
      for (size_t i = 0; i < document.size(); ++i) {
        if (i == 0 && start) expected.emplace_back(0, document[0]);
        if (i > 0) expected.emplace_back(document[i - 1], document[i]);
      }
    std::set<int32_t> docs;
    for (int64_t i = 0; i < batch.tokens(); ++i) {
      const Place& place = batch.places[i];
      ASSERT_EQ(place.sample, 70 + i / length);
      ASSERT_EQ(place.offset, i % length);
      if (batch.labels[i] != kX) got.emplace_back(batch.ids[i], batch.labels[i]);
      if (place.doc < 0) {
        ASSERT_EQ(batch.labels[i], kX);
        continue;
      }
      docs.insert(place.doc);
      const bool same = i > 0 && batch.places[i - 1].doc == place.doc;
      ASSERT_EQ(place.pos, same ? batch.places[i - 1].pos + 1 : 0);
      ASSERT_TRUE(!same || batch.places[i - 1].sample == place.sample);
      if (same && batch.labels[i - 1] != kX) {
        ASSERT_EQ(batch.labels[i - 1], batch.ids[i]);
      }
    }
    ASSERT_EQ(got, expected) << "seed " << seed;
    ASSERT_EQ(corpus.predicted_tokens(), static_cast<int64_t>(expected.size()));
    if (!docs.empty()) {
      ASSERT_EQ(*docs.rbegin() + 1, static_cast<int32_t>(docs.size()));
    }
  }
}

TEST(Corpus, RefusesATokenTheModelDoesNotHave) {
  const TestFolder folder;
  const std::string prefix = write_dataset(folder, "d", {{1, 2}, {3, 4, 100, 5}}, 0);
  EXPECT_EQ(input_error([&] { Corpus(prefix, layout(4), no_warning); }),
            prefix +
                ": token 100 in document 1 at offset 2; it must be in [0, 100), the model's "
                "vocab_size (the data was packed with 257)");
  SequenceLayout larger = layout(4);
  larger.vocab_size = 101;
  EXPECT_EQ(Corpus(prefix, larger, no_warning).predicted_tokens(), 6);
}

TEST(Corpus, RefusesWhatDoesNotBelongTogether) {
  const TestFolder folder;
  const std::string prefix = write_dataset(folder, "d", {{1, 2}}, 0);
  const std::string json = read_file(prefix + ".json");
  write_dataset(folder, "d", {{1, 2, 3}});
  expect_contains(input_error([&] { Corpus(prefix, layout(4), no_warning); }),
                  prefix + ".json: 2 tokens in 1 documents, but " + prefix + ".idx has 3 in 1");
  write_dataset(folder, "d", {{1, 2}}, 200);
  EXPECT_EQ(input_error([&] { Corpus(prefix, layout(4), no_warning); }),
            prefix + ": eod_id 200; it must be in [0, 100), the model's vocab_size");
  write_dataset(folder, "d", {{}, {}}, 0);
  fs::remove(prefix + ".json");
  EXPECT_EQ(input_error([&] { Corpus(prefix, layout(4), no_warning); }),
            prefix + ": the data is empty; pack a text that is not");
}

TEST(Corpus, FingerprintSeesTokensAndLayout) {
  const TestFolder folder;
  const std::string a = write_dataset(folder, "a", {{1, 2}}, 0);
  const std::string b = write_dataset(folder, "b", {{1, 3}}, 0);
  const auto print = [](const std::string& prefix, int64_t length) {
    return Corpus(prefix, layout(length), no_warning).fingerprint();
  };
  EXPECT_EQ(print(a, 4), print(a, 4));
  EXPECT_NE(print(a, 4), print(b, 4));
  EXPECT_NE(print(a, 4), print(a, 5));
}

// A model that knows the frequencies of a token after a token spends the same nats whatever the
// sequence length and the batches: each token counts once.
TEST(Evaluation, BitsPerByteDoNotDependOnTheCut) {
  const TestFolder folder;
  const Documents documents = any_documents(3, 30, 50);
  const std::string prefix = write_dataset(folder, "d", documents, 0);
  std::map<std::pair<int32_t, int32_t>, double> pairs;
  std::map<int32_t, double> firsts;
  int64_t tokens = 0;
  for (const auto& document : documents)
    for (size_t i = 0; i < document.size(); ++i, ++tokens) {
      ++pairs[{i ? document[i - 1] : 0, document[i]}];
      ++firsts[i ? document[i - 1] : 0];
    }
  double expected = 0;
  for (const auto& [pair, count] : pairs) expected -= count * std::log(count / firsts[pair.first]);
  const double raw_bytes = static_cast<double>(tokens - static_cast<int64_t>(documents.size()));
  for (const int64_t length : {1, 2, 7, 64, 5000}) {
    const Evaluation evaluation(Corpus(prefix, layout(length, length / 3), no_warning));
    double nats = 0;
    int64_t count = 0;
    for (int64_t s = 0; s < evaluation.sequences(); s += 3) {
      const Batch batch =
          evaluation.make_batch(s, std::min<int64_t>(3, evaluation.sequences() - s), 1);
      EXPECT_EQ(batch.mtp.size(), 1u);
      EXPECT_EQ(batch.places[0].sample, s);
      count += count_valid(batch.labels);
      for (int64_t i = 0; i < batch.tokens(); ++i)
        if (batch.labels[i] != kX)
          nats -= std::log(pairs[{batch.ids[i], batch.labels[i]}] / firsts[batch.ids[i]]);
    }
    EXPECT_EQ(count, evaluation.predicted_tokens());
    EXPECT_EQ(count, tokens);
    EXPECT_NEAR(*evaluation.bits_per_byte(nats), expected / std::log(2.0) / raw_bytes, 1e-9);
  }
}

TEST(Evaluation, GivesNoFigureThatWouldFlatter) {
  const TestFolder folder;
  const auto ignore = [](const std::string&) {};
  const std::string plain = write_dataset(folder, "p", {{1, 2}});
  EXPECT_FALSE(Evaluation(Corpus(plain, layout(4), ignore)).bits_per_byte(1));
  const std::string noted = write_dataset(folder, "n", {{1, 2}}, 0);
  SequenceLayout bare = layout(4);
  bare.document_start = false;
  EXPECT_FALSE(Evaluation(Corpus(noted, bare, ignore)).bits_per_byte(1));
  EXPECT_TRUE(Evaluation(Corpus(noted, layout(4), ignore)).bits_per_byte(1));
}

}  // namespace
}  // namespace rondo

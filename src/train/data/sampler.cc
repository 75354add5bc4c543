#include "train/data/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "train/data/permutation.h"

namespace rondo {
namespace {

constexpr uint64_t kOne = uint64_t{1} << 32;

// floor(samples x share / 2^32), without an overflow
int64_t part(int64_t samples, uint64_t share) {
  const auto wide = static_cast<uint64_t>(samples);
  return static_cast<int64_t>((wide >> 32) * share + ((wide & (kOne - 1)) * share >> 32));
}

}  // namespace

Sampler::Sampler(std::vector<Corpus> corpora, std::vector<double> weights, uint64_t seed)
    : corpora_(std::move(corpora)), weights_(std::move(weights)), seed_(seed) {
  RONDO_CHECK(!corpora_.empty(), "no corpus");
  for (const Corpus& corpus : corpora_)
    RONDO_CHECK(corpus.sequence_length() == sequence_length(), "{}", corpus.prefix());
  if (weights_.empty())
    for (const Corpus& corpus : corpora_)
      weights_.push_back(static_cast<double>(corpus.sequences()));
  RONDO_CHECK(weights_.size() == corpora_.size(), "{} weights", weights_.size());
  double rest = 0;
  for (size_t i = weights_.size(); i-- > 0;) {
    RONDO_CHECK(weights_[i] > 0 && std::isfinite(weights_[i]), "weight {}", weights_[i]);
    rest += weights_[i];
    const auto share = static_cast<uint64_t>(std::llround(weights_[i] / rest * kOne));
    shares_.push_back(std::clamp<uint64_t>(share, 1, kOne));
  }
  std::reverse(shares_.begin(), shares_.end());
}

Sampler::Choice Sampler::choose(int64_t sample) const {
  RONDO_CHECK(sample >= 0, "sample {}", sample);
  // Corpus after corpus: of the samples left, this one's are where its rounded-down count steps up.
  Choice out;
  int64_t index = sample;
  for (;; ++out.corpus) {
    if (out.corpus + 1 == corpora_.size()) break;
    const int64_t before = part(index, shares_[out.corpus]);
    if (part(index + 1, shares_[out.corpus]) > before) {
      index = before;
      break;
    }
    index -= before;
  }
  const int64_t sequences = corpora_[out.corpus].sequences();
  out.epoch = index / sequences;
  const Permutation order(static_cast<uint64_t>(sequences), seed_, static_cast<uint64_t>(out.epoch),
                          out.corpus);
  out.sequence = static_cast<int64_t>(order(static_cast<uint64_t>(index % sequences)));
  return out;
}

Batch Sampler::make_batch(int64_t first_sample, int64_t count, int mtp_depth) const {
  Batch batch;
  int32_t doc = 0;
  for (int64_t sample = first_sample; sample < first_sample + count; ++sample) {
    const Choice choice = choose(sample);
    corpora_[choice.corpus].append(choice.sequence, sample, &doc, batch);
  }
  make_mtp(batch, mtp_depth);
  return batch;
}

int64_t Sampler::sequences() const {
  int64_t out = 0;
  for (const Corpus& corpus : corpora_) out += corpus.sequences();
  return out;
}

uint64_t Sampler::fingerprint() const {
  uint64_t hash = hash64(std::as_bytes(std::span(shares_)), seed_);
  for (const Corpus& corpus : corpora_) {
    const uint64_t one = corpus.fingerprint();
    hash = hash64(std::as_bytes(std::span(&one, 1)), hash);
  }
  return hash;
}

}  // namespace rondo

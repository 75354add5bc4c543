// Which sequence comes when, and the batches made of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/batch.h"
#include "train/data/corpus.h"

namespace rondo {

// Sample g of a run, g = 0, 1, ..., is a pure function of (corpora, weights, seed, g): the state of
// a run's data is the number of its next sample. The corpora take turns so that after any number of
// samples each has had its share to within two; within a corpus every epoch is a new order of
// all its sequences, each once. Const calls are thread-safe.
class Sampler {
 public:
  // `weights`: shares of the samples, any positive scale, one a corpus; empty: by the number of
  // sequences. All corpora have one sequence length.
  Sampler(std::vector<Corpus> corpora, std::vector<double> weights, uint64_t seed);

  struct Choice {
    size_t corpus = 0;
    int64_t epoch = 0;     // of this corpus
    int64_t sequence = 0;  // in it
  };
  Choice choose(int64_t sample) const;

  // Samples [first_sample, first_sample + count), one after the other: [count * sequence_length].
  // Place::sample is the number of the sample. With `mtp_depth` > 0 mtp is filled. InputError when
  // a token is not below vocab_size.
  Batch make_batch(int64_t first_sample, int64_t count, int mtp_depth) const;

  const std::vector<Corpus>& corpora() const { return corpora_; }
  int64_t sequence_length() const { return corpora_.front().sequence_length(); }
  int64_t sequences() const;  // of all corpora: an epoch, unless weights say otherwise
  // Resuming with another fingerprint would train on other samples.
  uint64_t fingerprint() const;

 private:
  std::vector<Corpus> corpora_;
  std::vector<double> weights_;
  uint64_t seed_;
  // shares_[i] / 2^32: of the samples that the corpora before i leave, those that i takes.
  std::vector<uint64_t> shares_;
};

}  // namespace rondo

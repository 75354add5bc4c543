// Held-out data: every sequence once, in order, and what a loss on it means in bits per byte.
#pragma once

#include <cstdint>
#include <optional>

#include "train/data/corpus.h"

namespace rondo {

// Every stored token of every document, its eod too, is predicted exactly once: the first from the
// leading eod, as in training; after a cut the sequence starts over with what its overlap gives it,
// so no token sees more context than it could, and many see less. Const calls are thread-safe.
class Evaluation {
 public:
  explicit Evaluation(Corpus corpus) : corpus_(std::move(corpus)) {}

  const Corpus& corpus() const { return corpus_; }
  int64_t sequences() const { return corpus_.sequences(); }
  // Sequences [first, first + count); Place::sample is the number of the sequence.
  Batch make_batch(int64_t first, int64_t count, int mtp_depth = 0) const;

  // Sum of count_valid() over all sequences: what total_nats must be summed over.
  int64_t predicted_tokens() const { return corpus_.predicted_tokens(); }
  // total_nats / ln 2 / raw bytes of the text. nullopt when that would flatter: the raw bytes are
  // not known (no PREFIX.json), or the first tokens of documents are not predicted.
  std::optional<double> bits_per_byte(double total_nats) const;

 private:
  Corpus corpus_;
};

}  // namespace rondo

// The [data] table of a run configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "train/data/evaluation.h"
#include "train/data/sampler.h"

namespace rondo {

struct DataConfig {
  std::vector<std::string> train;  // prefixes of packed data, at least one
  std::vector<double> weights;     // shares of the samples, one a prefix; empty: by size
  std::string validation;          // a prefix, or "" for none
  int64_t sequence_length = 0;     // tokens
  uint64_t seed = 0;               // of the order of samples
  std::optional<int64_t> eod_id;   // for data without a PREFIX.json
  bool document_start = true;      // each document begins with an eod; corpus.h
  int64_t validation_overlap = 0;  // tokens of context before each validation sequence
};

// Reads every key and refuses the others. `default_seed`: what `seed` is when it is absent.
DataConfig read_data_config(Reader reader, int64_t default_seed = 0);
// As a [data] table with every default written out.
Value to_value(const DataConfig& config);

struct TrainingData {
  Sampler train;
  std::optional<Evaluation> validation;
  // Of the first train prefix; null where that has no PREFIX.json.
  std::unique_ptr<Tokenizer> tokenizer;
};

// Opens all data for a model of this vocabulary. InputError as Corpus says, and when two datasets
// were packed with different tokenizers.
TrainingData open_training_data(const DataConfig& config, int64_t vocab_size, const Warn& warn);

// One dataset for `rondo eval`: layout as in `config`, whose train prefixes need not exist.
Evaluation open_evaluation(const DataConfig& config, const std::string& prefix, int64_t vocab_size,
                           const Warn& warn);

}  // namespace rondo

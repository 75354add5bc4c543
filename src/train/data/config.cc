#include "train/data/config.h"

#include <cmath>

#include "base/error.h"

namespace rondo {
namespace {

SequenceLayout layout_of(const DataConfig& config, int64_t vocab_size) {
  SequenceLayout layout;
  layout.sequence_length = config.sequence_length;
  layout.vocab_size = vocab_size;
  layout.eod_id = config.eod_id;
  layout.document_start = config.document_start;
  return layout;
}

void check_same_tokenizer(const Corpus& a, const Corpus& b) {
  if (!a.info() || !b.info()) return;
  if (a.info()->tokenizer_fingerprint != b.info()->tokenizer_fingerprint)
    fail_input("{} was packed with another tokenizer than {}; data of one run needs one tokenizer",
               b.prefix(), a.prefix());
}

}  // namespace

DataConfig read_data_config(Reader reader, int64_t default_seed) {
  DataConfig config;
  config.train = reader.texts("train");
  if (config.train.empty()) reader.fail("train", "must name at least one prefix of packed data");
  config.weights = reader.numbers("weights");
  if (!config.weights.empty() && config.weights.size() != config.train.size())
    reader.fail("weights", fmt::format("has {} entries; it must have one for each of {} prefixes",
                                       config.weights.size(), config.train.size()));
  for (const double weight : config.weights)
    if (!(weight > 0) || !std::isfinite(weight))
      reader.fail("weights", fmt::format("holds {}; a weight must be positive", weight));
  config.validation = reader.text("validation", "");
  config.sequence_length = reader.integer("sequence_length", std::nullopt, 2, 1 << 28);
  config.seed = static_cast<uint64_t>(reader.integer("seed", default_seed, 0, INT64_MAX));
  if (reader.has("eod_id"))
    config.eod_id = reader.integer("eod_id", std::nullopt, 0, INT32_MAX - 1);
  config.document_start = reader.boolean("document_start", true);
  config.validation_overlap =
      reader.integer("validation_overlap", 0, 0, config.sequence_length - 1);
  reader.finish();
  return config;
}

Value to_value(const DataConfig& config) {
  Value out;
  Value::Array train(config.train.begin(), config.train.end());
  out.set("train", std::move(train));
  if (!config.weights.empty())
    out.set("weights", Value::Array(config.weights.begin(), config.weights.end()));
  if (!config.validation.empty()) out.set("validation", config.validation);
  out.set("sequence_length", config.sequence_length);
  out.set("seed", static_cast<int64_t>(config.seed));
  if (config.eod_id) out.set("eod_id", *config.eod_id);
  out.set("document_start", config.document_start);
  out.set("validation_overlap", config.validation_overlap);
  return out;
}

TrainingData open_training_data(const DataConfig& config, int64_t vocab_size, const Warn& warn) {
  std::vector<Corpus> corpora;
  for (const std::string& prefix : config.train) {
    corpora.emplace_back(prefix, layout_of(config, vocab_size), warn);
    check_same_tokenizer(corpora.front(), corpora.back());
  }
  std::optional<Evaluation> validation;
  if (!config.validation.empty()) {
    validation = open_evaluation(config, config.validation, vocab_size, warn);
    check_same_tokenizer(corpora.front(), validation->corpus());
  }
  std::unique_ptr<Tokenizer> tokenizer;
  if (const auto& info = corpora.front().info())
    tokenizer = open_packed_tokenizer(corpora.front().prefix(), *info);
  return {Sampler(std::move(corpora), config.weights, config.seed), std::move(validation),
          std::move(tokenizer)};
}

Evaluation open_evaluation(const DataConfig& config, const std::string& prefix, int64_t vocab_size,
                           const Warn& warn) {
  SequenceLayout layout = layout_of(config, vocab_size);
  layout.overlap = config.validation_overlap;
  return Evaluation(Corpus(prefix, layout, warn));
}

}  // namespace rondo

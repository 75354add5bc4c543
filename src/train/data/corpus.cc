#include "train/data/corpus.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace rondo {
namespace {

constexpr int64_t kCheckedAtOnce = int64_t{1} << 28;  // under a second of reading
constexpr int64_t kCheckBlock = 1 << 16;

}  // namespace

Corpus::Corpus(const std::string& prefix, const SequenceLayout& layout, const Warn& warn)
    : data_(prefix), info_(read_pack_info(prefix)), layout_(layout) {
  RONDO_CHECK(layout.sequence_length >= 1 && layout.sequence_length <= INT32_MAX &&
                  layout.overlap >= 0 && layout.overlap < layout.sequence_length &&
                  layout.vocab_size >= 1 && layout.vocab_size <= INT32_MAX,
              "length {}, overlap {}, vocab {}", layout.sequence_length, layout.overlap,
              layout.vocab_size);
  if (info_ && (info_->tokens != data_.tokens() || info_->documents != data_.documents()))
    fail_input(
        "{0}.json: {1} tokens in {2} documents, but {0}.idx has {3} in {4}; the two are not "
        "of one dataset",
        prefix, info_->tokens, info_->documents, data_.tokens(), data_.documents());
  if (data_.tokens() == 0) fail_input("{}: the data is empty; pack a text that is not", prefix);
  if (data_.tokens() <= kCheckedAtOnce) check_tokens();

  std::optional<int64_t> eod = layout.eod_id;
  if (!eod && info_) eod = info_->eod_id;
  start_ = layout.document_start && eod.has_value();
  if (layout.document_start && !eod)
    warn(
        fmt::format("{0}: no {0}.json and no data.eod_id, so the first token of each document is "
                    "not predicted",
                    prefix));
  if (start_) {
    if (*eod < 0 || *eod >= layout.vocab_size)
      fail_input("{}: eod_id {}; it must be in [0, {}), the model's vocab_size", prefix, *eod,
                 layout.vocab_size);
    eod_ = static_cast<int32_t>(*eod);
  }
  row_ = row_begin(data_.documents());
  step_ = layout.sequence_length - layout.overlap;
  sequences_ = 1 + (std::max<int64_t>(0, row_ - layout.sequence_length) + step_ - 1) / step_;
}

int64_t Corpus::predicted_tokens() const {
  if (start_) return data_.tokens();
  int64_t unpredicted = 0;
  for (int64_t d = 0; d < data_.documents(); ++d)
    unpredicted += data_.document_begin(d) < data_.document_begin(d + 1);
  return data_.tokens() - unpredicted;
}

uint64_t Corpus::fingerprint() const {
  return hash64(fmt::format("{} {} {} {}", layout_.sequence_length, layout_.overlap, start_, eod_),
                data_.fingerprint());
}

int32_t Corpus::checked(int64_t token, int64_t index) const {
  if (token < 0 || token >= layout_.vocab_size) {
    const int64_t document = data_.document_of(index);
    fail_input(
        "{}: token {} in document {} at offset {}; it must be in [0, {}), the model's "
        "vocab_size{}",
        prefix(), token, document, index - data_.document_begin(document), layout_.vocab_size,
        info_ ? fmt::format(" (the data was packed with {})", info_->vocab_size) : "");
  }
  return static_cast<int32_t>(token);
}

void Corpus::check_tokens() const {
  std::vector<int64_t> block;
  for (int64_t begin = 0; begin < data_.tokens(); begin += kCheckBlock) {
    block.resize(std::min(kCheckBlock, data_.tokens() - begin));
    data_.read(begin, block);
    for (size_t i = 0; i < block.size(); ++i) checked(block[i], begin + static_cast<int64_t>(i));
  }
}

void Corpus::append(int64_t sequence, int64_t sample, int32_t* doc, Batch& batch) const {
  RONDO_CHECK(sequence >= 0 && sequence < sequences_, "sequence {} of {}", sequence, sequences_);
  RONDO_CHECK(sample >= 0 && sample <= INT32_MAX, "sample {} does not fit a place", sample);
  const int64_t begin = sequence * step_;
  const int64_t end = std::min(begin + layout_.sequence_length, row_);
  const int64_t context = sequence > 0 ? layout_.overlap : 0;  // labelled in the sequence before

  // The document that holds `begin`. Rows are strictly in order with leading eods; without them an
  // empty document takes no place, and the last of those that begin here is the one.
  int64_t low = 0, high = data_.documents();
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (row_begin(middle) <= begin ? low : high) = middle;
  }

  std::vector<int64_t> tokens;
  int32_t offset = 0;
  const auto add = [&](int64_t id, int32_t document, int64_t pos, int64_t label) {
    batch.ids.push_back(static_cast<int32_t>(id));
    batch.places.push_back(
        {static_cast<int32_t>(sample), offset, document, static_cast<int32_t>(pos)});
    batch.labels.push_back(offset < context ? kIgnoreLabel : static_cast<int32_t>(label));
    ++offset;
  };
  int64_t at = begin;
  for (int64_t document = low; at < end; ++document) {
    const int64_t document_end = row_begin(document + 1);
    const int64_t stop = std::min(end, document_end);
    if (stop <= at) continue;
    // The ids of [at, stop) and the one after it, if that is still of this document.
    const int64_t stored = data_.document_begin(document);
    const int64_t last = std::min(stop + 1, document_end);
    const int64_t shift = row_begin(document) + (start_ ? 1 : 0) - stored;  // row minus stored
    tokens.clear();
    int64_t from = at - shift;
    if (from < stored) {  // the leading eod
      tokens.push_back(eod_);
      ++from;
    }
    const size_t first = tokens.size();
    tokens.resize(last - at);
    data_.read(from, std::span(tokens).subspan(first));
    for (size_t i = first; i < tokens.size(); ++i)
      checked(tokens[i], from + static_cast<int64_t>(i - first));
    for (int64_t i = 0; i < stop - at; ++i)
      add(tokens[i], *doc, i,
          i + 1 < static_cast<int64_t>(tokens.size()) ? tokens[i + 1] : kIgnoreLabel);
    ++*doc;
    at = stop;
  }
  while (offset < layout_.sequence_length) add(0, -1, 0, kIgnoreLabel);
}

}  // namespace rondo

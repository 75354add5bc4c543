// One packed dataset cut into sequences of one length.
//
// A document of tokens t1..tn (the last of them, as packed, its eod) is laid out as eod, t1..tn, so
// that every stored token, the first too, is the label of a token before it: what the end of a
// document predicts is how a document begins. That leading eod is the start of the document, pos 0;
// it predicts t1 and nothing of the document before. tn predicts nothing.
// These rows stand one after the other and are cut every `sequence_length` tokens; only the last
// sequence is padded. A document that is cut goes on in the next sequence as a new document with
// pos 0 (and no new eod), and its last token before the cut keeps its true label, so that each
// stored token is predicted exactly once in an epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/batch.h"
#include "train/data/indexed.h"
#include "train/data/pack_info.h"
#include "train/data/text_files.h"

namespace rondo {

struct SequenceLayout {
  int64_t sequence_length = 0;    // tokens
  int64_t vocab_size = 0;         // the model's
  std::optional<int64_t> eod_id;  // over what PREFIX.json says; without both, no leading eod
  bool document_start = true;     // false: never a leading eod
  // A sequence begins this many tokens before the end of the one before it; they are read again as
  // context, with their labels ignored. For evaluation; in [0, sequence_length).
  int64_t overlap = 0;
};

// Const calls are thread-safe.
class Corpus {
 public:
  // InputError: files as IndexedDataset says, a PREFIX.json that disagrees with them, no tokens, an
  // eod_id that is not below vocab_size, a token that is negative or not below vocab_size (looked
  // for at once in data of up to 2^28 tokens, else when it is met). Warns when the first tokens of
  // documents go unpredicted because no eod is known.
  Corpus(const std::string& prefix, const SequenceLayout& layout, const Warn& warn);

  const std::string& prefix() const { return data_.prefix(); }
  const IndexedDataset& dataset() const { return data_; }
  const std::optional<PackInfo>& info() const { return info_; }
  int64_t sequence_length() const { return layout_.sequence_length; }
  int64_t sequences() const { return sequences_; }
  // The labels that count in all sequences together: all stored tokens, less the first of each
  // document where there is no leading eod.
  int64_t predicted_tokens() const;
  bool predicts_all() const { return start_; }
  // Of tokens, document boundaries and layout.
  uint64_t fingerprint() const;

  // Appends one sequence, which the run calls `sample`; its documents are numbered from *doc on,
  // which moves past them. No MTP: make_mtp() does that for the whole batch.
  void append(int64_t sequence, int64_t sample, int32_t* doc, Batch& batch) const;

 private:
  // Where a document, with its leading eod, begins in the row of all of them.
  int64_t row_begin(int64_t document) const {
    return data_.document_begin(document) + (start_ ? document : 0);
  }
  int32_t checked(int64_t token, int64_t index) const;
  void check_tokens() const;

  IndexedDataset data_;
  std::optional<PackInfo> info_;
  SequenceLayout layout_;
  bool start_ = false;
  int32_t eod_ = 0;
  int64_t row_ = 0, step_ = 0, sequences_ = 0;
};

}  // namespace rondo

#include "train/data/sentencepiece.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "train/data/utf8.h"

namespace rondo {
namespace {

namespace sp = sentencepiece;

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581: what the library makes of a space
constexpr size_t kEncodeChunk = 16 << 10;            // BPE's time grows faster than the text
constexpr size_t kTrainChunk = 4 << 10;              // the library skips sentences above a limit

// The front of `text` that the library can take as it is: valid UTF-8 without NUL, and without
// U+2581, which would come back as a space, and U+2585, which its trainer keeps for itself.
size_t plain_prefix(std::string_view text) {
  size_t size = 0;
  while (const size_t length = utf8_character(text.substr(size))) {
    const std::string_view c = text.substr(size, length);
    if (c == kSpace || c == "\xE2\x96\x85" || c[0] == '\0') break;
    size += length;
  }
  return size;
}

// Where to cut valid text of more than `most` bytes: after a line's end that no white space
// follows, else between two characters.
size_t cut(std::string_view text, size_t most) {
  if (text.size() <= most) return text.size();
  for (size_t at = most; at > most / 2; --at)
    if (text[at - 1] == '\n' && text[at] != '\n' && text[at] != ' ' && text[at] != '\t') return at;
  size_t at = most;
  while ((text[at] & 0xC0) == 0x80) --at;
  return at;
}

// The library's reason without its place in the library's source.
std::string reason(const sp::util::Status& status) {
  const std::string text = status.message();
  const size_t place = text.rfind("] ");
  return place == std::string::npos ? text : text.substr(place + 2);
}

class SentencePiece final : public Tokenizer {
 public:
  SentencePiece(std::string model, const std::string& source)
      : model_(std::move(model)), source_(source) {
    const auto status = model_.empty() ? sp::util::Status(sp::util::StatusCode::kInternal, "empty")
                                       : processor_.LoadFromSerializedProto(model_);
    if (!status.ok()) fail_input("{}: not a SentencePiece model: {}", source, reason(status));
    eod_ = processor_.eos_id();
    if (eod_ < 0)
      fail_input("{}: the model has no end-of-sentence piece; train it with eos_id >= 0", source);
    for (int byte = 0; byte < 256; ++byte) {
      bytes_[byte] = processor_.PieceToId(fmt::format("<0x{:02X}>", byte));
      if (!processor_.IsByte(bytes_[byte]))
        fail_input("{}: the model has no piece for byte {}; train it with byte_fallback", source,
                   byte);
    }
    text_.resize(processor_.GetPieceSize());
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      if (processor_.IsControl(id) || processor_.IsUnknown(id)) continue;
      std::string piece = processor_.IdToPiece(id);
      for (size_t at = 0; (at = piece.find(kSpace, at)) != std::string::npos; ++at)
        piece.replace(at, kSpace.size(), " ");
      text_[id] = std::move(piece);
    }
    for (int byte = 0; byte < 256; ++byte) text_[bytes_[byte]] = static_cast<char>(byte);
    // Says at once that a model loses bytes; encode() still checks every text.
    std::vector<int32_t> ids;
    encode("a  \xEF\xAC\x81\xC3\xA9 e\xCC\x81\r\n\t x ", ids);
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    while (!text.empty()) {
      size_t plain = plain_prefix(text);
      if (plain == 0) {
        out.push_back(bytes_[static_cast<unsigned char>(text[0])]);
        text.remove_prefix(1);
      }
      for (size_t chunk; plain > 0; plain -= chunk, text.remove_prefix(chunk)) {
        chunk = cut(text.substr(0, plain), kEncodeChunk);
        encode_plain(text.substr(0, chunk), out);
      }
    }
  }

  std::string_view bytes_of(int64_t id) const override {
    return id >= 0 && id < vocab_size() ? std::string_view(text_[id]) : std::string_view();
  }
  int32_t vocab_size() const override { return static_cast<int32_t>(text_.size()); }
  int32_t eod_id() const override { return eod_; }
  std::string kind() const override { return "sentencepiece"; }
  std::string_view model() const override { return model_; }
  uint64_t fingerprint() const override { return hash64(model_); }

 private:
  void encode_plain(std::string_view text, std::vector<int32_t>& out) const {
    std::vector<int> ids;
    const auto status = processor_.Encode({text.data(), text.size()}, &ids);
    if (!status.ok()) fail_input("{}: cannot encode: {}", source_, reason(status));
    size_t at = 0;
    for (const int id : ids) {
      const std::string_view piece = bytes_of(id);
      if (piece.empty() || text.substr(at, piece.size()) != piece) break;
      at += piece.size();
    }
    if (at != text.size())
      fail_input(
          "{}: the model changes text; train it with identity normalisation, byte_fallback, no "
          "added prefix and all white space kept",
          source_);
    out.insert(out.end(), ids.begin(), ids.end());
  }

  std::string model_, source_;
  sp::SentencePieceProcessor processor_;
  std::array<int32_t, 256> bytes_{};
  std::vector<std::string> text_;  // [vocab]: what an id stands for
  int32_t eod_ = -1;
};

// Hands the files to the trainer in pieces. What the library cannot take is left out: those bytes
// have their own pieces anyway.
class Pieces final : public sp::SentenceIterator {
 public:
  Pieces(const std::vector<TextFile>& files, double share) : files_(files), share_(share) {
    Next();
  }
  bool done() const override { return done_; }
  const std::string& value() const override { return value_; }
  sp::util::Status status() const override { return {}; }
  uint64_t used() const { return used_; }

  void Next() override {
    while (true) {
      while (rest_.empty()) {
        if (file_ == files_.size()) {
          done_ = true;
          return;
        }
        text_ = read_text_file(files_[file_++]);
        rest_ = text_;
      }
      const size_t plain = plain_prefix(rest_);
      if (plain == 0) {
        rest_.remove_prefix(1);
        continue;
      }
      const size_t size = cut(rest_.substr(0, plain), kTrainChunk);
      value_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
      const RandomKey key{0, RandomUse::kShuffle};
      if (share_ < 1 && uniform01(philox(key, chunk_++, 0)[0]) >= share_) continue;
      used_ += size;
      return;
    }
  }

 private:
  const std::vector<TextFile>& files_;
  double share_;
  size_t file_ = 0;
  std::string text_, value_;
  std::string_view rest_;
  uint64_t chunk_ = 0, used_ = 0;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece(std::string model, const std::string& source) {
  return std::make_unique<SentencePiece>(std::move(model), source);
}

TrainedSentencePiece train_sentencepiece(const std::vector<TextFile>& files,
                                         const SentencePieceTraining& training) {
  if (training.algorithm != "bpe" && training.algorithm != "unigram")
    fail_input("tokenizer algorithm \"{}\"; it must be \"bpe\" or \"unigram\"", training.algorithm);
  check_range("tokenizer vocab_size", static_cast<double>(training.vocab_size), 260, 1 << 24);
  check_range("tokenizer character_coverage", training.character_coverage, 0.5, 1);
  TrainedSentencePiece out;
  for (const TextFile& file : files) out.input_bytes += file.bytes;
  Pieces pieces(files, static_cast<double>(training.most_bytes) /
                           std::max<double>(1, static_cast<double>(out.input_bytes)));
  if (pieces.done()) fail_input("no text to train a tokenizer on, in {} files", files.size());
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", training.algorithm},
      {"vocab_size", std::to_string(training.vocab_size)},
      {"character_coverage", fmt::format("{}", training.character_coverage)},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"split_digits", "true"},
      {"unk_id", "0"},
      {"eos_id", "1"},
      {"bos_id", "-1"},
      {"pad_id", "-1"},
      {"eos_piece", "<eod>"},
      {"max_sentence_length", std::to_string(kTrainChunk)},
      {"num_threads", "1"},  // sums over threads would follow their number
      {"minloglevel", "2"},
  };
  const auto status = sp::SentencePieceTrainer::Train(options, &pieces, &out.model);
  out.used_bytes = pieces.used();
  if (!status.ok())
    fail_input("cannot train a tokenizer of vocab_size {} on {} bytes: {}", training.vocab_size,
               out.used_bytes, reason(status));
  make_sentencepiece(out.model, "the trained tokenizer");
  return out;
}

}  // namespace rondo

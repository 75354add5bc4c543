// Text to token ids and back, without loss: decode(encode(text)) == text for any bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace rondo {

// Const calls are thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the ids of `text`; no special token is among them.
  virtual void encode(std::string_view text, std::vector<int32_t>& out) const = 0;
  std::vector<int32_t> encode(std::string_view text) const;
  // The bytes that an id stands for. Nothing for the end of a document, and for ids outside the
  // vocabulary: a model's table may be larger than its tokenizer.
  virtual std::string_view bytes_of(int64_t id) const = 0;
  std::string decode(std::span<const int32_t> ids) const;

  virtual int32_t vocab_size() const = 0;  // ids are in [0, vocab_size())
  virtual int32_t eod_id() const = 0;      // the end of a document
  virtual std::string kind() const = 0;    // "bytes" or "sentencepiece"
  // What open_tokenizer() would read: the bytes of the .model file; empty for "bytes".
  virtual std::string_view model() const = 0;
  virtual uint64_t fingerprint() const = 0;  // the same number, the same tokens
};

// 256 byte values and the end of a document, id 256.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// "bytes", or the path of a SentencePiece model. InputError when the file cannot be read or would
// lose bytes.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name);

// As Tokenizer::kind() and model() gave them, e.g. from a checkpoint; `source` for messages.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, std::string model,
                                          const std::string& source);

}  // namespace rondo

// The indexed dataset of Megatron-LM, version 1: PREFIX.bin holds tokens, PREFIX.idx says where
// sequences and documents begin. docs/formats/indexed.md describes the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace rondo {

enum class TokenType : uint8_t { kU8 = 1, kI8 = 2, kI16 = 3, kI32 = 4, kI64 = 5, kU16 = 8 };

int64_t token_bytes(TokenType type);
// What Megatron-LM takes: u16 below 65,500 ids, else i32.
TokenType token_type_for(int64_t vocab_size);

fs::path idx_path(const std::string& prefix);  // PREFIX.idx
fs::path bin_path(const std::string& prefix);  // PREFIX.bin

// Reads a dataset where it lies, memory-mapped. The tokens of all documents are one row, numbered
// from 0. Const calls are thread-safe.
class IndexedDataset {
 public:
  // InputError that names the file when one is missing, damaged, cut short, of another version or
  // of a type that holds no tokens, or when the two files disagree. Reads the whole .idx once.
  explicit IndexedDataset(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  TokenType type() const { return type_; }
  int64_t tokens() const { return tokens_; }
  int64_t sequences() const { return sequences_; }
  int64_t documents() const { return documents_; }
  // The number of the first token of a document, in [0, tokens()]; documents() is allowed and gives
  // tokens().
  int64_t document_begin(int64_t document) const;
  // The last document that begins at or before `token` and holds it.
  int64_t document_of(int64_t token) const;
  int64_t token(int64_t index) const;
  // out[i] = token(begin + i)
  void read(int64_t begin, std::span<int64_t> out) const;

  // Of the whole .idx and of the .bin: all of it up to 1 GiB, above that 1,024 pieces of 1 MiB
  // spread evenly, with the first and the last.
  uint64_t fingerprint() const;

 private:
  int64_t pointer(int64_t sequence) const;  // bytes; sequences_ gives the size of the .bin
  void check_tables() const;

  std::string prefix_;
  MappedFile idx_, bin_;
  TokenType type_ = TokenType::kU16;
  int64_t width_ = 2;  // bytes a token
  int64_t sequences_ = 0, documents_ = 0, tokens_ = 0;
  const std::byte* sizes_ = nullptr;     // i32 [sequences], not aligned, as are the next
  const std::byte* pointers_ = nullptr;  // i64 [sequences]
  const std::byte* document_ = nullptr;  // i64 [documents + 1]: its first sequence
};

// Writes a dataset document by document. The .bin streams to disk; in memory stay four bytes a
// sequence and eight a document.
class IndexedWriter {
 public:
  // `longest_sequence`: a longer document is stored as several sequences, because the format counts
  // a sequence's tokens in 32 bits. InputError when a file cannot be written (disk full).
  IndexedWriter(const fs::path& bin, const fs::path& idx, TokenType type,
                int64_t longest_sequence = INT32_MAX);

  // More tokens of the present document. InvariantError when one does not fit the type.
  void add(std::span<const int32_t> tokens);
  void end_document();  // an empty document is one sequence of no tokens
  // Writes the .idx and fsyncs both files. Nothing is added after it.
  void finish();

  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return static_cast<int64_t>(documents_.size()) - 1; }

 private:
  FileWriter bin_;
  fs::path idx_path_;
  TokenType type_;
  int64_t longest_sequence_;
  int64_t tokens_ = 0;
  int64_t open_ = 0;  // tokens of the sequence that is being written
  std::vector<int32_t> sizes_;
  std::vector<int64_t> documents_ = {0};
};

}  // namespace rondo

#include "train/data/indexed.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace rondo {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::array<char, 9> kMagic = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr uint64_t kVersion = 1;
constexpr uint64_t kHeader = 9 + 8 + 1 + 8 + 8;

template <class T>
T load(const std::byte* at, int64_t index = 0) {
  T value;
  std::memcpy(&value, at + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

// Calls body with a value of the C++ type of the tokens.
template <class Body>
void with_type(TokenType type, Body&& body) {
  switch (type) {
    case TokenType::kU8:
      return body(uint8_t{});
    case TokenType::kI8:
      return body(int8_t{});
    case TokenType::kI16:
      return body(int16_t{});
    case TokenType::kI32:
      return body(int32_t{});
    case TokenType::kI64:
      return body(int64_t{});
    case TokenType::kU16:
      return body(uint16_t{});
  }
  RONDO_CHECK(false, "token type {}", static_cast<int>(type));
}

}  // namespace

int64_t token_bytes(TokenType type) {
  int64_t width = 0;
  with_type(type, [&](auto value) { width = sizeof(value); });
  return width;
}

TokenType token_type_for(int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::kU16 : TokenType::kI32;
}

fs::path idx_path(const std::string& prefix) {
  return prefix + ".idx";
}

fs::path bin_path(const std::string& prefix) {
  return prefix + ".bin";
}

IndexedDataset::IndexedDataset(const std::string& prefix)
    : prefix_(prefix), idx_(idx_path(prefix)), bin_(bin_path(prefix)) {
  const std::string idx = idx_.path().string();
  const std::byte* data = idx_.bytes().data();
  const uint64_t size = idx_.bytes().size();
  if (size < kHeader)
    fail_input("{}: {} bytes; an index has at least {}: it was cut short, pack the data again", idx,
               size, kHeader);
  if (std::memcmp(data, kMagic.data(), kMagic.size()) != 0)
    fail_input("{}: does not begin with MMIDIDX; it must be an index of Megatron-LM's kind", idx);
  const auto version = load<uint64_t>(data + 9);
  if (version != kVersion)
    fail_input("{}: format version {}; version {} can be read", idx, version, kVersion);
  const auto code = load<uint8_t>(data + 17);
  type_ = static_cast<TokenType>(code);
  if (!(code >= 1 && code <= 5) && code != 8)
    fail_input("{}: dtype code {} at byte 17; tokens are of code 1 to 5 or 8, integers", idx, code);
  width_ = token_bytes(type_);

  // Compared by division: a hostile count must not overflow.
  const auto sequences = load<uint64_t>(data + 18);
  const auto starts = load<uint64_t>(data + 26);
  const uint64_t rest = size - kHeader;
  if (sequences > rest / 12 || starts > (rest - sequences * 12) / 8 ||
      sequences * 12 + starts * 8 != rest)
    fail_input(
        "{}: {} bytes do not fit its header of {} sequences and {} document indices; it was cut "
        "short or damaged, pack the data again",
        idx, size, sequences, starts);
  if (starts == 0)
    fail_input("{}: no document indices; there is one more than there are documents", idx);
  sequences_ = static_cast<int64_t>(sequences);
  documents_ = static_cast<int64_t>(starts) - 1;
  sizes_ = data + kHeader;
  pointers_ = sizes_ + sequences * 4;
  document_ = pointers_ + sequences * 8;
  tokens_ = static_cast<int64_t>(bin_.bytes().size()) / width_;
  check_tables();
}

void IndexedDataset::check_tables() const {
  const std::string idx = idx_.path().string();
  int64_t expected = 0;
  for (int64_t s = 0; s < sequences_; ++s) {
    const auto size = load<int32_t>(sizes_, s);
    const auto at = load<int64_t>(pointers_, s);
    if (size < 0) fail_input("{}: sequence {} has {} tokens; a size is not negative", idx, s, size);
    if (at != expected)
      fail_input("{}: sequence {} begins at byte {}; after the sizes before it, it begins at {}",
                 idx, s, at, expected);
    expected += size * width_;  // at most 2^31 x 2^31 x 8 would overflow, but no such .idx fits
    if (expected > std::numeric_limits<int64_t>::max() / 2)
      fail_input("{}: sequence {} ends past every file size", idx, s);
  }
  const auto have = static_cast<int64_t>(bin_.bytes().size());
  if (have != expected)
    fail_input("{}: {} bytes, but {} describes {}; the two are not of one dataset, or one was cut",
               bin_.path().string(), have, idx, expected);
  int64_t before = 0;
  for (int64_t d = 0; d <= documents_; ++d) {
    const auto first = load<int64_t>(document_, d);
    if (first < before || first > sequences_ || (d == 0 && first != 0))
      fail_input("{}: document index {} is {}; it must be {}", idx, d, first,
                 d == 0 ? std::string("0") : fmt::format("in [{}, {}]", before, sequences_));
    before = first;
  }
  if (before != sequences_)
    fail_input("{}: the last document index is {}; it must be {}, the number of sequences", idx,
               before, sequences_);
}

int64_t IndexedDataset::pointer(int64_t sequence) const {
  return sequence == sequences_ ? tokens_ * width_ : load<int64_t>(pointers_, sequence);
}

int64_t IndexedDataset::document_begin(int64_t document) const {
  RONDO_CHECK(document >= 0 && document <= documents_, "document {} of {}", document, documents_);
  return pointer(load<int64_t>(document_, document)) / width_;
}

int64_t IndexedDataset::document_of(int64_t token) const {
  RONDO_CHECK(token >= 0 && token < tokens_, "token {} of {}", token, tokens_);
  int64_t low = 0, high = documents_;  // begin(low) <= token < begin(high)
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (document_begin(middle) <= token ? low : high) = middle;
  }
  return low;
}

int64_t IndexedDataset::token(int64_t index) const {
  int64_t value = 0;
  read(index, {&value, 1});
  return value;
}

void IndexedDataset::read(int64_t begin, std::span<int64_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  RONDO_CHECK(begin >= 0 && count <= tokens_ - begin, "tokens [{}, {}) of {}", begin, begin + count,
              tokens_);
  with_type(type_, [&](auto value) {
    using T = decltype(value);
    for (int64_t i = 0; i < count; ++i) out[i] = load<T>(bin_.bytes().data(), begin + i);
  });
}

uint64_t IndexedDataset::fingerprint() const {
  constexpr uint64_t kPiece = 1 << 20, kPieces = 1024;
  const uint64_t index = hash64(idx_.bytes());
  const std::span<const std::byte> tokens = bin_.bytes();
  if (tokens.size() <= kPiece * kPieces) return hash64(tokens, index);
  uint64_t hash = index;
  const uint64_t last = tokens.size() - kPiece;
  for (uint64_t i = 0; i < kPieces; ++i) {
    // last x i / (pieces - 1) without an overflow
    const uint64_t at = last / (kPieces - 1) * i + last % (kPieces - 1) * i / (kPieces - 1);
    hash = hash64(tokens.subspan(at, kPiece), hash);
  }
  return hash;
}

IndexedWriter::IndexedWriter(const fs::path& bin, const fs::path& idx, TokenType type,
                             int64_t longest_sequence)
    : bin_(bin), idx_path_(idx), type_(type), longest_sequence_(longest_sequence) {
  RONDO_CHECK(longest_sequence >= 1 && longest_sequence <= INT32_MAX, "{}", longest_sequence);
}

void IndexedWriter::add(std::span<const int32_t> tokens) {
  with_type(type_, [&](auto first) {
    using T = decltype(first);
    for (const int32_t token : tokens) {
      RONDO_CHECK(std::in_range<T>(token), "token {} in {} bytes", token, sizeof(T));
      if (open_ == longest_sequence_) {
        sizes_.push_back(static_cast<int32_t>(open_));
        open_ = 0;
      }
      bin_.write(bytes_of(static_cast<T>(token)));
      ++open_;
    }
  });
  tokens_ += static_cast<int64_t>(tokens.size());
}

void IndexedWriter::end_document() {
  sizes_.push_back(static_cast<int32_t>(open_));
  open_ = 0;
  documents_.push_back(static_cast<int64_t>(sizes_.size()));
}

void IndexedWriter::finish() {
  RONDO_CHECK(open_ == 0, "the last document was not ended");
  bin_.close();
  FileWriter idx(idx_path_);
  idx.write(std::string_view(kMagic.data(), kMagic.size()));
  idx.write(bytes_of(kVersion));
  idx.write(bytes_of(static_cast<uint8_t>(type_)));
  idx.write(bytes_of(static_cast<uint64_t>(sizes_.size())));
  idx.write(bytes_of(static_cast<uint64_t>(documents_.size())));
  for (const int32_t size : sizes_) idx.write(bytes_of(size));
  int64_t at = 0;
  for (const int32_t size : sizes_) {
    idx.write(bytes_of(at));
    at += size * token_bytes(type_);
  }
  for (const int64_t first : documents_) idx.write(bytes_of(first));
  idx.close();
}

}  // namespace rondo

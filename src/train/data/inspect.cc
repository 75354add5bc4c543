#include "train/data/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "train/data/utf8.h"

namespace rondo {
namespace {

const char* name_of(TokenType type) {
  switch (type) {
    case TokenType::kU8:
      return "u8";
    case TokenType::kI8:
      return "i8";
    case TokenType::kI16:
      return "i16";
    case TokenType::kI32:
      return "i32";
    case TokenType::kI64:
      return "i64";
    case TokenType::kU16:
      return "u16";
  }
  return "?";
}

// So that a terminal shows the text and does not obey it.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_character(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // U+0080 to U+009F are control characters too.
    const bool control =
        first < 0x20 || first == 0x7F ||
        (first == 0xC2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (first == '\n') {
      out += "\\n";
    } else if (first == '\\') {
      out += "\\\\";
    } else if (length == 0 || control) {
      out += fmt::format("\\x{:02X}", first);
      if (length == 2) out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[1]));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace

Inspection inspect(const std::string& prefix, int64_t first_tokens) {
  const IndexedDataset data(prefix);
  Inspection out;
  out.prefix = prefix;
  out.type = data.type();
  out.documents = data.documents();
  out.sequences = data.sequences();
  out.tokens = data.tokens();
  out.info = read_pack_info(prefix);

  constexpr int64_t kBlock = 1 << 16;
  std::vector<int64_t> block;
  for (int64_t begin = 0; begin < data.tokens(); begin += kBlock) {
    block.resize(std::min(kBlock, data.tokens() - begin));
    data.read(begin, block);
    const auto [least, largest] = std::minmax_element(block.begin(), block.end());
    out.least_id = begin == 0 ? *least : std::min(out.least_id, *least);
    out.largest_id = begin == 0 ? *largest : std::max(out.largest_id, *largest);
  }

  std::vector<int64_t> lengths;
  std::vector<int64_t> rows(64);  // by bit width of length - 1
  for (int64_t d = 0; d < data.documents(); ++d) {
    const int64_t begin = data.document_begin(d), length = data.document_begin(d + 1) - begin;
    lengths.push_back(length);
    ++rows[std::bit_width(static_cast<uint64_t>(std::max<int64_t>(length - 1, 0)))];
    if (length == 0 || (length == 1 && out.info && data.token(begin) == out.info->eod_id))
      ++out.empty_documents;
  }
  if (!lengths.empty()) {
    std::sort(lengths.begin(), lengths.end());
    out.shortest = lengths.front();
    out.median = lengths[lengths.size() / 2];
    out.longest = lengths.back();
    out.mean = static_cast<double>(data.tokens()) / static_cast<double>(lengths.size());
    for (size_t bits = 0; bits < rows.size(); ++bits)
      if (rows[bits] > 0 || !out.lengths.empty())
        out.lengths.emplace_back(int64_t{1} << bits, rows[bits]);
    while (out.lengths.back().second == 0) out.lengths.pop_back();
  }

  out.first_tokens.resize(std::clamp<int64_t>(first_tokens, 0, data.tokens()));
  data.read(0, out.first_tokens);
  if (out.info) {
    const auto tokenizer = open_packed_tokenizer(prefix, *out.info);
    out.first_text.emplace();
    for (const int64_t id : out.first_tokens) *out.first_text += tokenizer->bytes_of(id);
  }
  return out;
}

std::string to_text(const Inspection& in) {
  std::string out = fmt::format(
      "data        {}\n"
      "documents   {}, of which {} empty\n"
      "tokens      {} as {}, ids {} to {}\n"
      "sequences   {}\n"
      "lengths     {} to {} tokens a document, median {}, mean {:.1f}\n",
      in.prefix, in.documents, in.empty_documents, in.tokens, name_of(in.type), in.least_id,
      in.largest_id, in.sequences, in.shortest, in.longest, in.median, in.mean);
  int64_t most = 1;
  for (const auto& [length, count] : in.lengths) most = std::max(most, count);
  for (const auto& [length, count] : in.lengths)
    out +=
        fmt::format("  <= {:>12} {:>12} {}\n", length, count, std::string(count * 40 / most, '#'));
  if (in.info) {
    const PackInfo& info = *in.info;
    out += fmt::format("tokenizer   {}{}, vocab_size {}, eod {}, fingerprint {}\n", info.tokenizer,
                       info.tokenizer_file.empty() ? "" : " (" + info.tokenizer_file + ")",
                       info.vocab_size, info.eod_id, info.tokenizer_fingerprint);
    out += fmt::format("raw text    {} bytes, {:.3f} bytes a token\n", info.raw_bytes,
                       in.tokens ? static_cast<double>(info.raw_bytes) / in.tokens : 0.0);
  } else {
    out += fmt::format("tokenizer   unknown: there is no {}.json\n", in.prefix);
  }
  out += fmt::format("first ids   {}\n", fmt::join(in.first_tokens, " "));
  if (in.first_text) out += fmt::format("first text  {}\n", escaped(*in.first_text));
  return out;
}

}  // namespace rondo

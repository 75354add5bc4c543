// What packed data holds, for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/data/indexed.h"
#include "train/data/pack_info.h"

namespace rondo {

struct Inspection {
  std::string prefix;
  TokenType type = TokenType::kU16;
  int64_t documents = 0, sequences = 0, tokens = 0;
  int64_t empty_documents = 0;           // no token but the eod, or none at all
  int64_t least_id = 0, largest_id = 0;  // 0 without tokens
  // Tokens a document, eod included; 0 without documents.
  int64_t shortest = 0, median = 0, longest = 0;
  double mean = 0;
  // (most, count): documents of at most so many tokens and more than the row before; most is a
  // power of two. Only from the first row that counts any to the last.
  std::vector<std::pair<int64_t, int64_t>> lengths;
  std::optional<PackInfo> info;
  std::vector<int64_t> first_tokens;      // of the dataset, as many as asked for
  std::optional<std::string> first_text;  // their bytes; without a PREFIX.json there are none
};

// Reads all of the data. InputError as IndexedDataset, read_pack_info and open_packed_tokenizer.
Inspection inspect(const std::string& prefix, int64_t first_tokens = 64);

// Several lines, ended by a newline. Control bytes and invalid UTF-8 of the text are escaped.
std::string to_text(const Inspection& inspection);

}  // namespace rondo

// PREFIX.json beside packed data: what made it. docs/formats/indexed.md lists the keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "train/data/tokenizer.h"

namespace rondo {

struct PackInfo {
  std::string tokenizer;              // Tokenizer::kind()
  std::string tokenizer_file;         // for "sentencepiece": a name in the folder of PREFIX
  std::string tokenizer_fingerprint;  // hex64
  int64_t vocab_size = 0, eod_id = 0;
  int64_t raw_bytes = 0;  // of text, before tokenization
  int64_t tokens = 0, documents = 0;
  friend bool operator==(const PackInfo&, const PackInfo&) = default;
};

std::string to_json(const PackInfo& info);

// nullopt when there is no PREFIX.json, as for data that Megatron-LM packed. InputError when it is
// there and damaged.
std::optional<PackInfo> read_pack_info(const std::string& prefix);

// The tokenizer that packed PREFIX. InputError when its file is missing or no longer the same.
std::unique_ptr<Tokenizer> open_packed_tokenizer(const std::string& prefix, const PackInfo& info);

}  // namespace rondo

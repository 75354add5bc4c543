// Text files to packed data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/data/pack_info.h"
#include "train/data/text_files.h"

namespace rondo {

// What is held out for validation.
enum class Split {
  kNone,       // nothing: one dataset PREFIX
  kBytes,      // the last int(fraction x all raw bytes), files taken one after the other; the file
               // that the cut falls into is a document on either side
  kDocuments,  // int(fraction x files), chosen by the seed
};

struct PackOptions {
  std::vector<std::string> inputs;  // files and folders; list_text_files()
  std::string prefix;
  Split split = Split::kNone;      // else PREFIX-train and PREFIX-valid
  double validation_fraction = 0;  // in (0, 1)
  uint64_t seed = 0;               // for kDocuments
  bool overwrite = false;
};

struct PackedData {
  std::string prefix;
  PackInfo info;
};

struct PackResult {
  PackedData train;  // all of it without a split
  std::optional<PackedData> validation;
  int64_t empty_documents = 0, invalid_utf8_documents = 0;
};

// Bytes of text done, of all.
using PackProgress = std::function<void(uint64_t done, uint64_t total)>;

// Every file is a document and gets the tokenizer's eod. Files are written under temporary names
// (*.tmp) and renamed when all are complete, .idx last; on an error none is left. Warns, in one
// line each, of empty documents and of invalid UTF-8, whose bytes go through.
// InputError: no text, nothing to hold out or nothing left, an output that exists and is not to be
// overwritten, a file that cannot be read or written.
PackResult pack(const PackOptions& options, const Tokenizer& tokenizer, const Warn& warn,
                const PackProgress& progress);

}  // namespace rondo

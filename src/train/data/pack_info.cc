#include "train/data/pack_info.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/value.h"

namespace rondo {
namespace {

constexpr const char* kFormat = "rondo-packed-1";
constexpr int64_t kMost = INT64_MAX;

}  // namespace

std::string to_json(const PackInfo& info) {
  Value out;
  out.set("format", kFormat);
  out.set("tokenizer", info.tokenizer);
  if (!info.tokenizer_file.empty()) out.set("tokenizer_file", info.tokenizer_file);
  out.set("tokenizer_fingerprint", info.tokenizer_fingerprint);
  out.set("vocab_size", info.vocab_size);
  out.set("eod_id", info.eod_id);
  out.set("raw_bytes", info.raw_bytes);
  out.set("tokens", info.tokens);
  out.set("documents", info.documents);
  return to_json(out, 2) + "\n";
}

std::optional<PackInfo> read_pack_info(const std::string& prefix) {
  const std::string path = prefix + ".json";
  if (!fs::exists(path)) return std::nullopt;
  const Value value = parse_json(read_file(path), path);
  Reader reader(value, path);
  PackInfo info;
  reader.choice("format", std::nullopt, {kFormat});
  info.tokenizer = reader.choice("tokenizer", std::nullopt, {"bytes", "sentencepiece"});
  info.tokenizer_file = reader.text("tokenizer_file", "");
  info.tokenizer_fingerprint = reader.text("tokenizer_fingerprint", std::nullopt);
  info.vocab_size = reader.integer("vocab_size", std::nullopt, 1, INT32_MAX);
  info.eod_id = reader.integer("eod_id", std::nullopt, 0, info.vocab_size - 1);
  info.raw_bytes = reader.integer("raw_bytes", std::nullopt, 0, kMost);
  info.tokens = reader.integer("tokens", std::nullopt, 0, kMost);
  info.documents = reader.integer("documents", std::nullopt, 0, kMost);
  reader.finish();
  if (info.tokenizer == "sentencepiece" &&
      (info.tokenizer_file.empty() || fs::path(info.tokenizer_file).has_parent_path()))
    reader.fail("tokenizer_file", "must be the name of a model in the same folder");
  return info;
}

std::unique_ptr<Tokenizer> open_packed_tokenizer(const std::string& prefix, const PackInfo& info) {
  std::string source = prefix + ".json", model;
  if (info.tokenizer != "bytes") {
    const fs::path path = fs::path(prefix).parent_path() / info.tokenizer_file;
    model = read_file(path);
    source = path.string();
  }
  auto tokenizer = make_tokenizer(info.tokenizer, std::move(model), source);
  if (hex64(tokenizer->fingerprint()) != info.tokenizer_fingerprint)
    fail_input("{}: fingerprint {}, but {}.json was packed with {}; it must be the same tokenizer",
               source, hex64(tokenizer->fingerprint()), prefix, info.tokenizer_fingerprint);
  return tokenizer;
}

}  // namespace rondo

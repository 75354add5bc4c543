#include "train/data/pack.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/hash.h"
#include "train/data/indexed.h"
#include "train/data/permutation.h"
#include "train/data/utf8.h"

namespace rondo {
namespace {

constexpr size_t kPiece = 4 << 20;  // text tokenized at a time, so that a huge file needs no memory

// A piece ends after a line where it can: tokens do not reach over lines, so pieces do not show.
size_t piece_size(std::string_view text) {
  if (text.size() <= kPiece) return text.size();
  const size_t line = text.rfind('\n', kPiece - 1);
  return line == std::string_view::npos ? kPiece : line + 1;
}

// One dataset that is being written under temporary names.
class Output {
 public:
  Output(const std::string& prefix, const Tokenizer& tokenizer, const std::string& tokenizer_file)
      : prefix_(prefix),
        tokenizer_(tokenizer),
        writer_(temporary("bin"), temporary("idx"), token_type_for(tokenizer.vocab_size())) {
    info_.tokenizer = tokenizer.kind();
    info_.tokenizer_file = tokenizer_file;
    info_.tokenizer_fingerprint = hex64(tokenizer.fingerprint());
    info_.vocab_size = tokenizer.vocab_size();
    info_.eod_id = tokenizer.eod_id();
  }
  ~Output() {
    std::error_code ignored;
    for (const char* kind : {"bin", "idx", "json"}) fs::remove(temporary(kind), ignored);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void add_document(std::string_view text, const std::function<void(size_t)>& done) {
    info_.raw_bytes += static_cast<int64_t>(text.size());
    while (!text.empty()) {
      const size_t size = piece_size(text);
      ids_.clear();
      tokenizer_.encode(text.substr(0, size), ids_);
      writer_.add(ids_);
      text.remove_prefix(size);
      done(size);
    }
    const int32_t eod = tokenizer_.eod_id();
    writer_.add({&eod, 1});
    writer_.end_document();
  }

  void finish() {
    writer_.finish();
    info_.tokens = writer_.tokens();
    info_.documents = writer_.documents();
    FileWriter json(temporary("json"));
    json.write(to_json(info_));
    json.close();
  }

  // The .idx comes last and goes first: without it there is no dataset, so a crash in between
  // leaves none rather than one of two halves.
  void publish() {
    std::error_code error;
    fs::remove(idx_path(prefix_), error);
    for (const char* kind : {"bin", "json", "idx"}) {
      if (!error) fs::rename(temporary(kind), prefix_ + "." + kind, error);
      if (error) fail_input("{}.{}: cannot rename: {}", prefix_, kind, error.message());
    }
  }

  PackedData packed() const { return {prefix_, info_}; }

 private:
  fs::path temporary(const char* kind) const { return prefix_ + "." + kind + ".tmp"; }

  std::string prefix_;
  const Tokenizer& tokenizer_;
  IndexedWriter writer_;
  PackInfo info_;
  std::vector<int32_t> ids_;
};

// Where the held-out text begins in each file: 0 is all of it, the file's size none of it.
std::vector<uint64_t> validation_begins(const PackOptions& options,
                                        const std::vector<TextFile>& files) {
  uint64_t total = 0;
  std::vector<uint64_t> begins;
  for (const TextFile& file : files) {
    total += file.bytes;
    begins.push_back(file.bytes);
  }
  if (options.split == Split::kNone) return begins;
  const double fraction = options.validation_fraction;
  if (!(fraction > 0 && fraction < 1))
    fail_input("validation fraction {}: it must lie between 0 and 1", fraction);
  const bool by_bytes = options.split == Split::kBytes;
  const uint64_t all = by_bytes ? total : files.size();
  const auto held_out = static_cast<uint64_t>(static_cast<double>(all) * fraction);
  if (held_out == 0 || held_out >= all)
    fail_input("validation fraction {} of {} {} holds out {}; both parts must hold something",
               fraction, all, by_bytes ? "bytes" : "documents", held_out);
  if (by_bytes) {
    uint64_t first = 0;
    const uint64_t cut = total - held_out;
    for (size_t i = 0; i < files.size(); first += files[i++].bytes)
      begins[i] = cut > first ? std::min(files[i].bytes, cut - first) : 0;
  } else {
    const Permutation order(files.size(), options.seed, 0, 0);
    for (uint64_t i = 0; i < held_out; ++i) begins[order(i)] = 0;
  }
  return begins;
}

void refuse_existing(const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths)
    if (fs::exists(fs::symlink_status(path)))
      fail_input("{} exists; choose another prefix, or give --overwrite", path.string());
}

}  // namespace

PackResult pack(const PackOptions& options, const Tokenizer& tokenizer, const Warn& warn,
                const PackProgress& progress) {
  if (fs::path(options.prefix).filename().empty())
    fail_input("prefix \"{}\": it must end in a file name", options.prefix);
  const bool split = options.split != Split::kNone;
  std::vector<std::string> prefixes = {options.prefix};
  if (split) prefixes = {options.prefix + "-train", options.prefix + "-valid"};
  std::vector<fs::path> paths;
  for (const std::string& prefix : prefixes)
    for (const char* kind : {".bin", ".idx", ".json"}) paths.push_back(prefix + kind);
  const fs::path model_path = options.prefix + "-tokenizer.model";
  const bool has_model = !tokenizer.model().empty();
  if (has_model) paths.push_back(model_path);
  if (!options.overwrite) refuse_existing(paths);

  const std::vector<TextFile> files = list_text_files(options.inputs, warn);
  const std::vector<uint64_t> begins = validation_begins(options, files);
  uint64_t total = 0, done = 0;
  for (const TextFile& file : files) total += file.bytes;
  if (total == 0) fail_input("no text to pack: {} files, all of them empty", files.size());

  std::error_code error;
  const fs::path folder = fs::path(options.prefix).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) fail_input("{}: cannot create the folder: {}", folder.string(), error.message());
  std::vector<std::unique_ptr<Output>> outputs;
  for (const std::string& prefix : prefixes)
    outputs.push_back(std::make_unique<Output>(
        prefix, tokenizer, has_model ? model_path.filename().string() : std::string()));

  PackResult result;
  std::string first_empty, first_invalid;
  const auto advance = [&](size_t bytes) {
    done += bytes;
    if (progress) progress(done, total);
  };
  for (size_t i = 0; i < files.size(); ++i) {
    const MappedFile mapped(files[i].path);
    const std::string name = files[i].path.string();
    const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()),
                                mapped.bytes().size());
    if (text.size() != files[i].bytes)
      fail_input(
          "{}: it was {} bytes when it was listed and is {} now; it must not change meanwhile",
          name, files[i].bytes, text.size());
    if (text.empty() && result.empty_documents++ == 0) first_empty = name;
    const size_t valid = utf8_prefix(text);
    if (valid != text.size() && result.invalid_utf8_documents++ == 0)
      first_invalid = fmt::format("{} at byte {}", name, valid);
    const std::string_view head = text.substr(0, begins[i]);
    // An empty file teaches nothing and measures nothing: it stays with training.
    if (!head.empty() || text.empty()) outputs[0]->add_document(head, advance);
    if (head.size() < text.size()) outputs[1]->add_document(text.substr(head.size()), advance);
  }
  for (const auto& output : outputs) {
    output->finish();
    const PackedData packed = output->packed();
    if (packed.info.raw_bytes == 0)
      fail_input("{}: it would hold only empty documents; choose another split", packed.prefix);
  }
  if (has_model) write_file_atomic(model_path, tokenizer.model());
  for (const auto& output : outputs) output->publish();
  fsync_path(folder.empty() ? fs::path(".") : folder);

  if (result.empty_documents > 0)
    warn(fmt::format("{} empty documents, the first {}", result.empty_documents, first_empty));
  if (result.invalid_utf8_documents > 0)
    warn(
        fmt::format("{} documents are not valid UTF-8, the first {}; their bytes go through as "
                    "they are",
                    result.invalid_utf8_documents, first_invalid));
  result.train = outputs[0]->packed();
  if (split) result.validation = outputs[1]->packed();
  return result;
}

}  // namespace rondo

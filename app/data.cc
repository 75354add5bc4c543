#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "train/data/inspect.h"
#include "train/data/pack.h"
#include "train/data/sentencepiece.h"

namespace rondo::app {
namespace {

void print_packed(const PackedData& data) {
  fmt::print("{}: {} documents, {} tokens, {} bytes of text\n", data.prefix, data.info.documents,
             data.info.tokens, data.info.raw_bytes);
}

}  // namespace

void run_pack(const PackCommand& command, Log& log) {
  PackOptions options{.inputs = command.inputs,
                      .prefix = command.out,
                      .validation_fraction = command.validation_fraction,
                      .seed = static_cast<uint64_t>(command.seed),
                      .overwrite = command.overwrite};
  if (command.split_by != "bytes" && command.split_by != "documents")
    fail_input("--split-by is {}; it must be bytes or documents", command.split_by);
  if (command.validation_fraction < 0 || command.validation_fraction >= 1)
    fail_input("--validation-fraction is {}; it must be at least 0 and below 1",
               command.validation_fraction);
  if (command.validation_fraction > 0)
    options.split = command.split_by == "bytes" ? Split::kBytes : Split::kDocuments;
  const auto tokenizer = open_tokenizer(command.tokenizer);
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const PackResult result = pack(
      options, *tokenizer, [&](const std::string& line) { log.warn("{}", line); },
      [&](uint64_t done, uint64_t total) {
        if (!terminal) return;
        fmt::print("\r{} of {} bytes", done, total);
        if (done == total) fmt::print("\r\x1b[K");
        std::fflush(stdout);
      });
  print_packed(result.train);
  if (result.validation) print_packed(*result.validation);
}

void run_train_tokenizer(const TrainTokenizerCommand& command, Log& log) {
  if (fs::exists(command.out)) fail_input("{}: is there already; give another --out", command.out);
  const auto files =
      list_text_files(command.inputs, [&](const std::string& line) { log.warn("{}", line); });
  SentencePieceTraining options;
  options.vocab_size = command.vocab_size;
  options.algorithm = command.algorithm;
  const TrainedSentencePiece trained = train_sentencepiece(files, options);
  if (const fs::path parent = fs::path(command.out).parent_path(); !parent.empty())
    fs::create_directories(parent);
  write_file_atomic(command.out, trained.model);
  fmt::print("{}: {} tokens, trained on {} of {} bytes\n", command.out, command.vocab_size,
             trained.used_bytes, trained.input_bytes);
}

void run_inspect(const InspectCommand& command) {
  fmt::print("{}", to_text(inspect(command.prefix, command.tokens)));
}

}  // namespace rondo::app

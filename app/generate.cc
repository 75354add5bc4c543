#include "train/generate.h"

#include <cstdio>

#include "base/error.h"
#include "commands.h"
#include "train/run.h"

namespace rondo::app {

void run_generate(const GenerateCommand& command, Log& log) {
  if (command.temperature < 0)
    fail_input("--temperature is {}; it must be 0 or more", command.temperature);
  if (command.top_p <= 0 || command.top_p > 1)
    fail_input("--top-p is {}; it must be above 0 and at most 1", command.top_p);
  if (command.tokens < 0) fail_input("--tokens is {}; it must be 0 or more", command.tokens);
  LoadedModel loaded = load_model(command.folder, command.device, command.threads, log);
  std::unique_ptr<Tokenizer> tokenizer =
      command.tokenizer.empty() ? std::move(loaded.tokenizer) : open_tokenizer(command.tokenizer);
  if (!tokenizer)
    fail_input("{}: names no tokenizer; give --tokenizer bytes or a SentencePiece model",
               loaded.folder);
  if (tokenizer->vocab_size() > loaded.model->config().vocab_size)
    fail_input("{}: the tokenizer has {} tokens, the model {}", loaded.folder,
               tokenizer->vocab_size(), loaded.model->config().vocab_size);
  // A document begins as in training: behind the end of another.
  std::vector<int32_t> ids = {tokenizer->eod_id()};
  tokenizer->encode(command.prompt, ids);
  GenerateOptions options{
      .tokens = command.tokens,
      .temperature = command.temperature,
      .top_p = command.top_p,
      .seed = static_cast<uint64_t>(command.seed),
      .context = command.context > 0 ? command.context : loaded.data.sequence_length,
      .stop = tokenizer->eod_id()};
  std::fwrite(command.prompt.data(), 1, command.prompt.size(), stdout);
  generate(*loaded.model, std::move(ids), options, [&](int32_t token) {
    const std::string_view bytes = tokenizer->bytes_of(token);
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    std::fflush(stdout);
  });
  std::fputc('\n', stdout);
}

}  // namespace rondo::app

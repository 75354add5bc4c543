#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "commands.h"
#include "train/evaluate.h"
#include "train/run.h"

namespace rondo::app {

void run_eval(const EvalCommand& command, Log& log) {
  if (command.batch < 1) fail_input("--batch is {}; it must be at least 1", command.batch);
  LoadedModel loaded = load_model(command.folder, command.device, command.threads, log);
  DataConfig data = loaded.data;
  if (command.sequence_length > 0) data.sequence_length = command.sequence_length;
  if (data.sequence_length <= 0)
    fail_input("{}: is no run, so --sequence-length is wanted", command.folder);
  const ModelConfig& model = loaded.model->config();
  if (data.sequence_length > model.max_position_embeddings)
    fail_input("--sequence-length is {}; the model has max_position_embeddings {}",
               data.sequence_length, model.max_position_embeddings);
  const Evaluation held_out = open_evaluation(
      data, command.data, model.vocab_size, [&](const std::string& line) { log.warn("{}", line); });
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const EvaluationResult result =
      evaluate(*loaded.model, held_out, command.batch, 0, [&](int64_t done, int64_t all) {
        if (!terminal) return;
        fmt::print("\r{}/{} sequences", done, all);
        if (done == all) fmt::print("\r\x1b[K");
        std::fflush(stdout);
      });
  fmt::print("{} on {}: {} tokens, {:.4f} nats a token\n", loaded.folder, command.data,
             result.tokens, result.loss);
  if (result.bits_per_byte)
    fmt::print("{:.3f} bits per byte\n", *result.bits_per_byte);
  else
    fmt::print("no bits per byte: {}.json does not say how many bytes the text has\n",
               command.data);
}

}  // namespace rondo::app

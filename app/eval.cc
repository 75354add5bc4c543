#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "commands.h"
#include "model/safetensors.h"
#include "train/evaluate.h"
#include "train/run.h"

namespace rondo::app {
namespace {

// What another implementation needs to be compared with this one: whole sequences alone.
void write_logits(Model& model, const Evaluation& data, int64_t sequence_length, int64_t batch,
                  const std::string& path) {
  const Batch tokens = data.make_batch(0, std::min(batch, data.sequences()));
  int64_t rows = tokens.tokens() / sequence_length;
  const auto is_padding = [](const Place& at) { return at.doc < 0; };
  while (rows > 0 && std::any_of(tokens.places.begin() + (rows - 1) * sequence_length,
                                 tokens.places.begin() + rows * sequence_length, is_padding))
    --rows;
  if (rows == 0)
    fail_input(
        "--logits: the data has no whole sequence of {} tokens; give a smaller "
        "--sequence-length",
        sequence_length);
  const std::vector<float> logits = model.logits(tokens, 0, rows * sequence_length);
  write_safetensors(
      path, {{"input_ids",
              DType::kI32,
              {rows, sequence_length},
              [&](std::byte* out) {
                std::memcpy(out, tokens.ids.data(),
                            static_cast<size_t>(rows * sequence_length) * 4);
              }},
             {"logits",
              DType::kF32,
              {rows, sequence_length, model.config().vocab_size},
              [&](std::byte* out) { std::memcpy(out, logits.data(), logits.size() * 4); }}});
  fmt::print("{}: logits of {} sequences of {} tokens\n", path, rows, sequence_length);
}

}  // namespace

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
  if (!command.logits.empty())
    return write_logits(*loaded.model, held_out, data.sequence_length, command.batch,
                        command.logits);
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

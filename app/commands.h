// The subcommands: what the command line is parsed into, and what runs it. One file each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"

namespace rondo::app {

struct TrainCommand {
  std::string config, out, trace, wait_sites;
  std::vector<std::string> set;
  bool resume = false;
  int64_t ranks = 1;
};
struct EvalCommand {
  std::string folder, data, device = "cpu", logits;
  int64_t sequence_length = 0, batch = 8, threads = 0;
};
struct GenerateCommand {
  std::string folder, prompt, device = "cpu", tokenizer;
  int64_t tokens = 200, threads = 0, context = 0;
  double temperature = 0.8, top_p = 0.95;
  int64_t seed = 0;
};
struct PackCommand {
  std::vector<std::string> inputs;
  std::string out, tokenizer = "bytes", split_by = "bytes";
  double validation_fraction = 0;
  int64_t seed = 0;
  bool overwrite = false;
};
struct TrainTokenizerCommand {
  std::vector<std::string> inputs;
  std::string out, algorithm = "bpe";
  int64_t vocab_size = 4096;
};
struct InspectCommand {
  std::string prefix;
  int64_t tokens = 64;
};

// What the command line asked for.
struct Request {
  enum class Kind { kTrain, kEval, kGenerate, kPack, kTrainTokenizer, kInspect, kDoctor, kNone };
  Kind kind = Kind::kNone;
  TrainCommand train;
  EvalCommand eval;
  GenerateCommand generate;
  PackCommand pack;
  TrainTokenizerCommand train_tokenizer;
  InspectCommand inspect;
  int exit_code = 0;  // of kNone: --help was printed, or the line was wrong
};

// Prints help itself. A wrong command line: one line on stderr, exit code 2.
Request parse_command_line(int argc, char** argv);

void run_train(const TrainCommand& command, Log& log);
void run_eval(const EvalCommand& command, Log& log);
void run_generate(const GenerateCommand& command, Log& log);
void run_pack(const PackCommand& command, Log& log);
void run_train_tokenizer(const TrainTokenizerCommand& command, Log& log);
void run_inspect(const InspectCommand& command);
void run_doctor();

}  // namespace rondo::app

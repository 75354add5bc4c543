// A training run from its configuration to its last checkpoint.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/trace.h"
#include "comm/channel.h"
#include "model/model.h"
#include "train/data/config.h"
#include "train/run_config.h"

namespace rondo {

struct TrainOptions {
  std::string out;      // the run folder
  bool resume = false;  // go on from its latest checkpoint
  bool terminal = false;
  Trace* trace = nullptr;
  std::vector<std::string>* wait_sites = nullptr;  // receives the device's, for fault tests
};

// As one rank of many: every rank calls with the channel of its own and the same configuration.
struct RankOptions {
  std::unique_ptr<Channel> channel;  // null: the run has one rank
  int ranks_here = 1;                // ranks that share this machine's processors
};

// The run folder holds config.toml (resolved), metrics.jsonl, step-N/ and a lock while this runs. A
// folder that holds a run already is refused unless `resume`; one in use is refused always.
// Rank 0 alone writes and logs.
void train(const RunConfig& config, const TrainOptions& options, Log& log, RankOptions rank = {});

// A model of a run folder, a checkpoint, or a hub folder, ready to evaluate or generate.
struct LoadedModel {
  std::unique_ptr<Device> device;
  std::unique_ptr<Context> ctx;
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;  // null when the folder names none
  std::string folder;                    // where the weights came from
  DataConfig data;                       // of the run; sequence_length 0 when unknown
};
LoadedModel load_model(const std::string& folder, const std::string& device, int64_t threads,
                       Log& log);

}  // namespace rondo

// Checkpoints: RUN/step-N/ is a hub folder, with Rondo's own state in step-N/rondo/.
//
//   config.json, model.safetensors   what transformers loads; in the configured dtype
//   rondo/state.json                 step, position in the data, identity, hashes of the files
//   rondo/optimizer.safetensors      "m.NAME", "v.NAME": moments of trained parameters, fp32
//   rondo/masters.safetensors        fp32 weights, when model.safetensors is not F32
//   rondo/tokenizer.model            where the tokenizer has a file
//
// docs/formats/checkpoint.md has the details. Written as step-N.tmp, every file flushed to the disk
// and hashed, then renamed: a folder step-N is whole.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/hub.h"
#include "train/data/tokenizer.h"

namespace rondo {

// What must be the same for a run to go on.
struct RunIdentity {
  std::string data;  // fingerprint of the data and its order, hex
  int64_t vocab_size = 0, batch_size = 0, sequence_length = 0;
};

struct TrainState {
  int64_t step = 0;         // steps done
  int64_t samples = 0;      // the next sample of the data
  int64_t tokens_seen = 0;  // padding left out
  RunIdentity identity;
};

struct Snapshot {
  TrainState state;
  std::vector<float> weights, m, v;  // flat, by the parameter table
};

// `run`/step-N; an old one of that name is replaced only after the new one is whole. Throws
// InputError (disk full) and leaves the others as they were. Then deletes all but the last `keep`.
void write_checkpoint(const std::string& run, const Snapshot& snapshot, const ParameterTable& table,
                      const ModelConfig& config, DType dtype, const Tokenizer* tokenizer,
                      int64_t keep);

// The step-N of the highest N in a run folder; "" when there is none. Unfinished ones do not count.
std::string latest_checkpoint(const std::string& run);
// Deletes step-N.tmp folders that a killed run left.
void remove_unfinished(const std::string& run);

// Checks every file's hash. InputError that names the damaged file.
Snapshot read_checkpoint(const std::string& folder, const ParameterTable& table,
                         const ModelConfig& config);
// InputError that says which of data, vocabulary, batch or sequence length differs.
void check_identity(const RunIdentity& now, const RunIdentity& then, const std::string& folder);

// The tokenizer that a checkpoint names; null when it names none.
std::unique_ptr<Tokenizer> checkpoint_tokenizer(const std::string& folder);

}  // namespace rondo

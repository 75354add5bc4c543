// The model as one rank sees it: forward and backward of a micro-batch, explicit, no tape.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/context.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/parameters.h"
#include "parallel/groups.h"

namespace rondo {

// What training adds to config.json.
struct ModelOptions {
  bool training = true;            // false: no gradients, nothing is kept for backward
  double mtp_loss_weight = 0.3;    // lambda: loss += lambda / D sum_d mtp_d
  double balance_loss_weight = 0;  // alpha
  double z_loss_weight = 0;
  double dropout = 0;            // of each sublayer's output, before the residual sum
  double attention_dropout = 0;  // of attention probabilities
  uint64_t seed = 0;             // of dropout
};

// Counts over the global batch of a step (all micro-batches, all ranks): what sums are divided by.
struct BatchCounts {
  int64_t tokens = 0;               // not padding
  int64_t labels = 0;               // valid labels
  std::vector<int64_t> mtp_labels;  // valid ones of each depth
  std::vector<int64_t> mtp_tokens;  // valid positions of each depth (for its router's losses)
  void add(const Batch& batch);
  static BatchCounts of(const std::vector<Batch>& batches);
};

// Losses of all micro-batches since begin_step(), already divided by the counts.
struct Losses {
  double loss = 0;            // cross-entropy of the next token: nats a valid label
  std::vector<double> mtp;    // each depth's
  double balance = 0, z = 0;  // weighted, summed over layers
  double total = 0;           // what the gradients belong to
};

class Model {
 public:
  // Allocates weights (and gradients when training) on the context's device; weights are undefined
  // until set_weights(). Every rank of `groups` makes one; they call alike.
  Model(Context& ctx, const ModelConfig& config, const ModelOptions& options,
        const RankGroups& groups = {});
  ~Model();

  const ModelConfig& config() const;
  const ParameterTable& table() const;  // of the parameters that this rank holds
  const RankGroups& groups() const;
  View weights() const;                              // f32 [flat_elements], device
  View gradients() const;                            // the same layout
  void set_weights(const std::vector<float>& flat);  // from the host; synchronises
  std::vector<float> get_weights() const;            // synchronises
  std::vector<float> get_gradients() const;

  // Losses and expert counts become zero, and gradients too when training; `counts` and `step`
  // (dropout's key) hold for the micro-batches that follow. kEvaluate: forward alone, no dropout,
  // gradients stay as they are. Submits only.
  enum class Mode : uint8_t { kTrain, kEvaluate };
  void begin_step(const BatchCounts& counts, int64_t step, Mode mode = Mode::kTrain);
  // Forward and, when training, backward of one micro-batch: adds to gradients, losses, counts.
  // InputError for an id outside [0, vocab_size). Submits only, but for the copy of the batch.
  void run(const Batch& batch);
  // Adds gradients, losses and expert counts over the ranks, after the last micro-batch: from here
  // on they are the global batch's. Submits only.
  void reduce();
  // Waits for what was submitted and reads the losses.
  Losses losses();
  // Tokens that went to each expert since begin_step(), for each routed layer: its index in the
  // model (MTP layers after the rest) and i64 [E] counts on the device.
  struct ExpertCounts {
    int64_t layer;
    View counts;  // i64 [E]
    View bias;    // [E] in weights(), null where the family has none
  };
  const std::vector<ExpertCounts>& expert_counts() const;

  // Logits of the rows [first, first + count) of a batch, to the host: [count, vocab_size]. MTP
  // left out. For generation and tests.
  std::vector<float> logits(const Batch& batch, int64_t first, int64_t count);
  // Logits of MTP depth d = 1..D, for tests; the same shape as logits().
  std::vector<float> mtp_logits(const Batch& batch, int depth);

  // Runs forward on the batch, looks at every tensor in the order of computation and names the
  // first that holds a NaN or an infinity, weights of a layer before its activations:
  // "layer 3, self_attn.o_proj.weight"; "" when all are finite. Slow: for the message of a failed
  // run.
  std::string first_nonfinite(const Batch& batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rondo

// The layers of a model in their order: embedding, decoder layers, head, and the MTP depths after
// them (DeepSeek-V3, arXiv 2412.19437, section 2.2).
#pragma once

#include <vector>

#include "model/layers/decoder.h"
#include "model/layers/head.h"
#include "model/model.h"

namespace rondo {

// A micro-batch on the device.
struct DeviceBatch {
  View ids, labels;  // i32 [T]
  struct Mtp {
    View ids, labels;  // i32 [T]
    View places;       // i32 [T, 4]: invalid positions are padding
  };
  std::vector<Mtp> mtp;
};

class Network {
 public:
  // `counts`: i64 [E] for every layer of the model, null views where it is dense.
  Network(const ModelConfig& config, const Weights& weights, const std::vector<View>& counts);

  // Forward through the decoder layers: the residual stream behind the last one, [T, H].
  Tensor trunk(const Pass& pass, const View& ids);
  // Its norm, what the head reads.
  Tensor final_norm(const Pass& pass, const View& x) { return head_.normed(pass, x); }
  void logits(const Pass& pass, const View& normed, const View& out) {
    head_.logits(pass, normed, out);
  }

  // Passes and counts of the MTP depths; `pass` itself of the main model.
  struct Depth {
    Pass pass;
    double labels;  // global count of valid labels
    double weight;  // lambda / D
    View loss_sum;  // f64 [1]
  };
  // Forward, losses and, when training, backward of one micro-batch.
  void run(const Pass& pass, const DeviceBatch& batch, double labels, const View& loss_sum,
           const std::vector<Depth>& depths);
  // Output of MTP depth `depth` (1-based), before its norm, from the normed output of the depth
  // before (depth 1: of the trunk), as transformers' MtpModel and SGLang feed it.
  Tensor mtp_forward(const Pass& pass, int depth, const View& ids, const View& previous);
  LossHead& mtp_head(int depth) { return mtp_[static_cast<size_t>(depth - 1)].head; }

 private:
  struct MtpLayer {
    int64_t layer;
    Weight enorm, hnorm, eh_proj;
    DecoderLayer decoder;
    LossHead head;
    int64_t slot;  // where its own tensors are saved: beyond all layers
  };
  void trunk_backward(const Pass& pass, const View& ids, Tensor dx);
  // dx of what mtp_forward gave -> adds to the embedding, writes d_previous.
  void mtp_backward(const Pass& pass, int depth, const View& ids, const View& previous, Tensor dx,
                    const View& d_previous);

  const Weight embedding_;
  std::vector<DecoderLayer> layers_;
  LossHead head_;
  std::vector<MtpLayer> mtp_;
};

}  // namespace rondo

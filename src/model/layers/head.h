// Final norm, output head and cross-entropy, a tile of tokens at a time: the logits of all tokens
// are never held at once, and their gradient is made where the logits stood.
#pragma once

#include "model/layers/pass.h"

namespace rondo {

class LossHead {
 public:
  // `norm`: "model.norm.weight" or an MTP layer's; `head`: "lm_head.weight" or the tied embedding.
  // `layer`: what the saved tensors go under; it must not be a decoder layer of its own.
  LossHead(const Weights& weights, const std::string& norm, const std::string& head, int64_t layer)
      : layer_(layer), norm_(weights, norm), head_(weights, head) {}

  // norm(x) of all tokens: [T, H].
  Tensor normed(const Pass& pass, const View& x);
  // loss_sum (f64 [1]) += sum of cross-entropies / count. When training, `d_normed` [T, H] is
  // written (gradients times weight / count) and the head's gradient added.
  void loss(const Pass& pass, const View& normed, const View& labels, double count, double weight,
            const View& loss_sum, const View& d_normed);
  // dx += the gradient through the norm of x.
  void backward(const Pass& pass, const View& x, const View& d_normed, const View& dx);
  // Logits of these normed rows: [rows, V].
  void logits(const Pass& pass, const View& normed, const View& out) {
    linear(pass.ctx, normed, head_.w, out);
  }

 private:
  const int64_t layer_;
  const Weight norm_, head_;
};

}  // namespace rondo

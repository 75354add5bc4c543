// Cross-entropy of rows of logits against labels; the gradient takes the logits' place.
#pragma once

#include "kernels/op.h"
#include "tensor/place.h"

namespace rondo {

// loss[t] = logsumexp(logits[t]) - logits[t, labels[t]], 0 where the label is kIgnoreLabel. With
// `gradient`, logits become (softmax - onehot) * grad_scale, rows of ignored labels exactly 0 (what
// the logits were does not matter then).
struct CrossEntropyArgs {
  static constexpr const char* kName = "cross_entropy";
  static constexpr double kTolerance = 2e-6;

  View logits;  // [T, V]
  View labels;  // i32 [T]: < V or kIgnoreLabel
  View loss;    // [T]
  bool gradient = false;
  float grad_scale = 1;

  void check() const {
    RONDO_RULE(logits.rank == 2 && labels.rank == 1 && labels.shape[0] == logits.rows() &&
                   loss.rank == 1 && loss.shape[0] == logits.rows(),
               "logits {}, labels {}, loss {}", to_string(logits), to_string(labels),
               to_string(loss));
  }
  template <class F>
  void views(F&& f) {
    f(logits, gradient ? Role::kInOut : Role::kIn);
    f(labels, Role::kIn);
    f(loss, Role::kOut);
  }
};

template <>
std::span<const Implementation<CrossEntropyArgs>> implementations<CrossEntropyArgs>();

}  // namespace rondo

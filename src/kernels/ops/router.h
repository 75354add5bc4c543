// Which experts a token goes to, with what weights (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
//
// kSigmoid: score = sigmoid(logit). kSoftmax: score = softmax over all experts (Mixtral, Qwen3).
// Selection uses score + bias; weights use the score alone. With groups, a group's score is the sum
// of its two largest biased scores; experts outside the best `topk_group` groups count as -inf, not
// 0 (biased scores may be negative). Ties go to the lower index. Chosen experts stand in order of
// their biased score, best first.
// Weights: the chosen scores, divided by their sum if `normalise`, times `scaling`. Normalisation
// goes through the logarithm of the scores, so that scores of 1e-30, or that are 0 in fp32, still
// give the right ratios.
#pragma once

#include "kernels/op.h"

namespace rondo {

struct RouterRule {
  enum class Scoring : uint8_t { kSigmoid, kSoftmax };
  Scoring scoring = Scoring::kSigmoid;
  int32_t k = 1;        // num_experts_per_tok
  int32_t n_group = 1;  // 1: no groups
  int32_t topk_group = 1;
  bool normalise = true;  // norm_topk_prob
  float scaling = 1;      // routed_scaling_factor
};

struct RouterArgs {
  static constexpr const char* kName = "router";
  static constexpr double kTolerance = 2e-6;

  View logits;   // [T, E]
  View bias;     // [E] or null: e_score_correction_bias
  View places;   // i32 [T, 4]: padding (doc < 0) goes nowhere
  View experts;  // i32 [T, k]; -1 throughout for padding
  View weights;  // [T, k]; 0 for padding
  RouterRule rule;
  bool replay = false;  // experts is given (an earlier choice); only weights are computed

  void check() const {
    RONDO_RULE(logits.rank == 2 && experts.rank == 2 && same_shape(experts, weights) &&
                   experts.rows() == logits.rows() && experts.cols() == rule.k,
               "logits {}, experts {}, weights {}", to_string(logits), to_string(experts),
               to_string(weights));
    RONDO_RULE(places.rank == 2 && places.rows() == logits.rows() && places.cols() == 4,
               "places {}", to_string(places));
    RONDO_RULE(!bias || (bias.rank == 1 && bias.shape[0] == logits.cols()), "bias {}",
               to_string(bias));
    RONDO_RULE(rule.n_group >= 1 && logits.cols() % rule.n_group == 0 && rule.topk_group >= 1 &&
                   rule.topk_group <= rule.n_group && rule.k >= 1 &&
                   rule.k <= logits.cols() / rule.n_group * rule.topk_group,
               "{} experts, {} groups, {} kept, k {}", logits.cols(), rule.n_group, rule.topk_group,
               rule.k);
  }
  template <class F>
  void views(F&& f) {
    f(logits, Role::kIn);
    f(bias, Role::kIn);
    f(places, Role::kIn);
    f(experts, replay ? Role::kIn : Role::kOut);
    f(weights, Role::kOut);
  }
};

// d_logits from the gradients of the weights. The choice is a constant: no gradient flows through
// it or into the bias. Row of padding: zeros.
struct RouterBackwardArgs {
  static constexpr const char* kName = "router_backward";
  static constexpr double kTolerance = 4e-6;

  View logits;        // [T, E]
  View experts;       // i32 [T, k]
  View slot_row;      // i32 [T, k]: the row of each chosen copy (ops/route.h)
  View d_row_weight;  // [R]
  View d_logits;      // [T, E]
  RouterRule rule;

  void check() const {
    RONDO_RULE(logits.rank == 2 && same_shape(logits, d_logits) && experts.rank == 2 &&
                   same_shape(experts, slot_row) && experts.rows() == logits.rows() &&
                   experts.cols() == rule.k && d_row_weight.rank == 1,
               "logits {}, experts {}, slot_row {}, d_row_weight {}", to_string(logits),
               to_string(experts), to_string(slot_row), to_string(d_row_weight));
  }
  template <class F>
  void views(F&& f) {
    f(logits, Role::kIn);
    f(experts, Role::kIn);
    f(slot_row, Role::kIn);
    f(d_row_weight, Role::kIn);
    f(d_logits, Role::kOut);
  }
};

template <>
std::span<const Implementation<RouterArgs>> implementations<RouterArgs>();
template <>
std::span<const Implementation<RouterBackwardArgs>> implementations<RouterBackwardArgs>();

}  // namespace rondo

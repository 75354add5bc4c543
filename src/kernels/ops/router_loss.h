// The router's two auxiliary losses: sequence balance (DeepSeek-V3, section 2.1.2, per document)
// and z-loss (Zoph et al., ST-MoE).
//
// Per document d of T_d tokens: f_i = E count_i / (k T_d), P_i = mean over its tokens of the scores
// normalised over all experts; L_d = sum_i f_i P_i; balance = alpha sum_d T_d L_d / sum_d T_d over
// the global batch. z = coefficient * mean over tokens of logsumexp(logits)^2. Sums are kept apart
// from the products, so that they can be added over ranks in between. Scores are normalised through
// their logarithm. Padding counts nowhere. f is a constant for the gradient.
#pragma once

#include "kernels/op.h"
#include "kernels/ops/router.h"

namespace rondo {

// Written, in order of tokens: counts and sums of each document, and sum of logsumexp^2.
struct RouterStatsArgs {
  static constexpr const char* kName = "router_stats";
  static constexpr double kTolerance = 2e-6;

  View logits;      // [T, E]
  View experts;     // i32 [T, k]
  View places;      // i32 [T, 4]; doc < D
  View counts;      // [D, E]: copies of d's tokens that went to e
  View score_sum;   // [D, E]: sum of normalised scores
  View doc_tokens;  // [D]: T_d
  View z_sum;       // [1]
  RouterRule::Scoring scoring = RouterRule::Scoring::kSigmoid;

  void check() const {
    RONDO_RULE(logits.rank == 2 && experts.rank == 2 && experts.rows() == logits.rows() &&
                   places.rank == 2 && places.rows() == logits.rows() && places.cols() == 4,
               "logits {}, experts {}, places {}", to_string(logits), to_string(experts),
               to_string(places));
    RONDO_RULE(counts.rank == 2 && counts.cols() == logits.cols() &&
                   same_shape(counts, score_sum) && doc_tokens.rank == 1 &&
                   doc_tokens.shape[0] == counts.rows() && z_sum.elements() == 1,
               "counts {}, score_sum {}, doc_tokens {}, z_sum {}", to_string(counts),
               to_string(score_sum), to_string(doc_tokens), to_string(z_sum));
  }
  template <class F>
  void views(F&& f) {
    f(logits, Role::kIn);
    f(experts, Role::kIn);
    f(places, Role::kIn);
    f(counts, Role::kOut);
    f(score_sum, Role::kOut);
    f(doc_tokens, Role::kOut);
    f(z_sum, Role::kOut);
  }
};

// losses[0] += balance_scale * sum_d E / (k T_d) sum_i counts score_sum (documents without tokens
// skipped); losses[1] += z_scale * z_sum. The scales hold coefficient / global tokens.
struct RouterLossArgs {
  static constexpr const char* kName = "router_loss";
  static constexpr double kTolerance = 2e-6;

  View counts, score_sum, doc_tokens, z_sum;  // as above
  View losses;                                // [2], added to
  int32_t k = 1;
  float balance_scale = 0, z_scale = 0;

  void check() const {
    RONDO_RULE(counts.rank == 2 && same_shape(counts, score_sum) && doc_tokens.rank == 1 &&
                   doc_tokens.shape[0] == counts.rows() && z_sum.elements() == 1 &&
                   losses.elements() == 2,
               "counts {}, doc_tokens {}, losses {}", to_string(counts), to_string(doc_tokens),
               to_string(losses));
  }
  template <class F>
  void views(F&& f) {
    f(counts, Role::kIn);
    f(score_sum, Role::kIn);
    f(doc_tokens, Role::kIn);
    f(z_sum, Role::kIn);
    f(losses, Role::kInOut);
  }
};

// d_logits += the gradient of both.
struct RouterLossBackwardArgs {
  static constexpr const char* kName = "router_loss_backward";
  static constexpr double kTolerance = 4e-6;

  View logits, places;      // as above
  View counts, doc_tokens;  // as above, summed over ranks
  View d_logits;            // [T, E], added to
  int32_t k = 1;
  RouterRule::Scoring scoring = RouterRule::Scoring::kSigmoid;
  float balance_scale = 0, z_scale = 0;

  void check() const {
    RONDO_RULE(logits.rank == 2 && same_shape(logits, d_logits) && places.rows() == logits.rows() &&
                   counts.rank == 2 && counts.cols() == logits.cols() &&
                   doc_tokens.shape[0] == counts.rows(),
               "logits {}, d_logits {}, places {}, counts {}", to_string(logits),
               to_string(d_logits), to_string(places), to_string(counts));
  }
  template <class F>
  void views(F&& f) {
    f(logits, Role::kIn);
    f(places, Role::kIn);
    f(counts, Role::kIn);
    f(doc_tokens, Role::kIn);
    f(d_logits, Role::kInOut);
  }
};

template <>
std::span<const Implementation<RouterStatsArgs>> implementations<RouterStatsArgs>();
template <>
std::span<const Implementation<RouterLossArgs>> implementations<RouterLossArgs>();
template <>
std::span<const Implementation<RouterLossBackwardArgs>> implementations<RouterLossBackwardArgs>();

}  // namespace rondo

// The parts of the router with nothing for vectors to do: choosing, and what a few chosen weigh.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ops/router.h"

namespace rondo::cpu {

// The best `most` values so far, best first, with their indices.
struct Best {
  float* values;
  int32_t* indices;
  int32_t most;
  int32_t count = 0;

  // A later one that is equal stays behind.
  void offer(float value, int32_t index) {
    if (count == most) {
      if (!(value > values[most - 1])) return;
    } else {
      ++count;
    }
    int32_t at = count - 1;
    for (; at > 0 && values[at - 1] < value; --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = value;
    indices[at] = index;
  }
};

// Memory of one worker: k + topk_group values, and topk_group indices.
struct ChoiceSpace {
  float* values;
  float* group_values;
  int32_t* groups;
};
inline int64_t choice_words(const RouterRule& rule) {
  return rule.k + 2 * int64_t{rule.topk_group};
}

inline void choose(const float* biased, int64_t n, const RouterRule& rule, const ChoiceSpace& space,
                   int32_t* experts) {
  Best chosen{space.values, experts, rule.k};
  const auto size = static_cast<int32_t>(n / rule.n_group);
  if (rule.topk_group == rule.n_group) {
    for (int32_t e = 0; e < n; ++e) chosen.offer(biased[e], e);
    return;
  }
  Best kept{space.group_values, space.groups, rule.topk_group};
  for (int32_t g = 0; g < rule.n_group; ++g) {
    float values[2] = {0, 0};
    int32_t indices[2];
    Best two{values, indices, 2};
    for (int32_t e = g * size; e < (g + 1) * size; ++e) two.offer(biased[e], e);
    kept.offer(values[0] + values[1], g);
  }
  // In order of experts, so that ties go to the lower one.
  std::sort(kept.indices, kept.indices + kept.count);
  for (int32_t i = 0; i < kept.count; ++i)
    for (int32_t e = kept.indices[i] * size; e < (kept.indices[i] + 1) * size; ++e)
      chosen.offer(biased[e], e);
}

// The share of each of the chosen, with a sum of 1. That of a sigmoid is exp(log-sigmoid - largest)
// with the logarithm kept in two parts, min(x, 0) - ln(1 + exp(-|x|)): the first is shifted, and
// the second, between 0 and ln 2, never leaves its exponential.
inline void normalised_shares(const float* x, const int32_t* experts, const RouterRule& rule,
                              float* out) {
  const bool sigmoid = rule.scoring == RouterRule::Scoring::kSigmoid;
  const float top = sigmoid ? 0 : std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity(), sum = 0;
  for (int32_t j = 0; j < rule.k; ++j) most = std::max(most, std::min(x[experts[j]], top));
  for (int32_t j = 0; j < rule.k; ++j) {
    const float logit = x[experts[j]];
    // NaN comes through here and not through min: the comparison is false.
    out[j] = std::exp((logit > top ? top : logit) - most);
    if (sigmoid) out[j] /= 1 + std::exp(-std::abs(logit));
    sum += out[j];
  }
  for (int32_t j = 0; j < rule.k; ++j) out[j] /= sum;
}

inline float sigmoid(float x) {
  const float u = std::exp(-std::abs(x));
  return (x < 0 ? u : 1) / (1 + u);
}

inline void check_experts(const char* op, const int32_t* experts, int32_t k, int64_t n) {
  for (int32_t j = 0; j < k; ++j)
    RONDO_CHECK(experts[j] >= 0 && experts[j] < n, "{}: expert {} of {}", op, experts[j], n);
}

}  // namespace rondo::cpu

#include "kernels/cpu/router.h"

#include "kernels/cpu/router_choice.h"
#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/router.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/router_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

using Scoring = RouterRule::Scoring;

// Turns a padded row of logits into the scores that choose. NaN becomes the lowest, so that the
// choice stays one of distinct experts.
HWY_INLINE void Biased(float* HWY_RESTRICT x, int64_t n, Scoring scoring, const float* bias) {
  const D d;
  const bool softmax = scoring == Scoring::kSoftmax;
  const V sum = hn::Set(d, softmax ? Exponentials(x, n, Largest(x, n)) : 1);
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < n; i += Lanes()) {
    V score = hn::LoadU(d, x + i);
    if (softmax) {
      score = hn::Div(score, sum);
    } else {
      const Sigmoid s(score);
      score = hn::Div(s.positive, s.below);
    }
    score = hn::Add(score, hn::LoadU(d, bias + i));
    hn::StoreU(hn::IfThenElse(hn::IsNaN(score), lowest, score), d, x + i);
  }
}

const char* Router(const RouterArgs& args, KernelEnv& env) {
  const RouterRule& rule = args.rule;
  const int64_t n = args.logits.cols(), padded = padded_row(n);
  const bool softmax = rule.scoring == Scoring::kSoftmax;
  // The bias as whole vectors, then what each worker needs.
  float* bias = static_cast<float*>(env.workspace.data);
  std::fill_n(bias, padded, 0.0f);
  if (args.bias) std::copy_n(args.bias.as<float>(), n, bias);
  for_blocks(env.pool, args.logits.rows(), 16, [&](int64_t begin, int64_t end, int worker) {
    float* scores = bias + padded + worker * (padded + choice_words(rule));
    ChoiceSpace space{};
    space.values = scores + padded;
    space.group_values = space.values + rule.k;
    space.groups = reinterpret_cast<int32_t*>(space.group_values + rule.topk_group);
    for (int64_t t = begin; t < end; ++t) {
      int32_t* experts = args.experts.as<int32_t>() + t * args.experts.stride[0];
      float* weights = args.weights.as<float>() + t * args.weights.stride[0];
      const bool padding = args.places.as<int32_t>()[t * args.places.stride[0] + 2] < 0;
      if (padding || (args.replay && experts[0] < 0)) {
        std::fill_n(weights, rule.k, 0.0f);
        if (!args.replay) std::fill_n(experts, rule.k, -1);
        continue;
      }
      const float* x = args.logits.as<float>() + t * args.logits.stride[0];
      if (args.replay) {
        check_experts(args.kName, experts, rule.k, n);
      } else {
        PadLogits(x, n, scores);
        Biased(scores, n, rule.scoring, bias);
        choose(scores, n, rule, space, experts);
      }
      if (rule.normalise) {
        normalised_shares(x, experts, rule, weights);
      } else if (softmax) {
        PadLogits(x, n, scores);
        const float sum = Exponentials(scores, n, Largest(scores, n));
        for (int32_t j = 0; j < rule.k; ++j) weights[j] = scores[experts[j]] / sum;
      } else {
        for (int32_t j = 0; j < rule.k; ++j) weights[j] = sigmoid(x[experts[j]]);
      }
      for (int32_t j = 0; j < rule.k; ++j) weights[j] *= rule.scaling;
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

const char* RouterBackward(const RouterBackwardArgs& args, KernelEnv& env) {
  const D d;
  const RouterRule& rule = args.rule;
  const int64_t n = args.logits.cols(), padded = padded_row(n);
  const bool softmax = rule.scoring == Scoring::kSoftmax;
  const float* d_row_weight = args.d_row_weight.as<float>();
  for_blocks(env.pool, args.logits.rows(), 16, [&](int64_t begin, int64_t end, int worker) {
    float* scores = static_cast<float*>(env.workspace.data) + worker * (padded + 2 * rule.k);
    float* shares = scores + padded;
    float* d_logs = shares + rule.k;
    for (int64_t t = begin; t < end; ++t) {
      const int32_t* experts = args.experts.as<int32_t>() + t * args.experts.stride[0];
      const int32_t* rows = args.slot_row.as<int32_t>() + t * args.slot_row.stride[0];
      float* out = args.d_logits.as<float>() + t * args.d_logits.stride[0];
      if (experts[0] < 0) {
        std::fill_n(out, n, 0.0f);
        continue;
      }
      const float* x = args.logits.as<float>() + t * args.logits.stride[0];
      check_experts(args.kName, experts, rule.k, n);
      float sum = 1;
      if (rule.normalise) {
        normalised_shares(x, experts, rule, shares);
      } else if (softmax) {
        PadLogits(x, n, scores);
        sum = Exponentials(scores, n, Largest(scores, n));
        for (int32_t j = 0; j < rule.k; ++j) shares[j] = scores[experts[j]] / sum;
      } else {
        for (int32_t j = 0; j < rule.k; ++j) shares[j] = sigmoid(x[experts[j]]);
      }
      // By the logarithm of each chosen score.
      float mean = 0, total = 0;
      for (int32_t j = 0; j < rule.k; ++j) {
        RONDO_CHECK(rows[j] < args.d_row_weight.shape[0], "router_backward: row {} of {}", rows[j],
                    args.d_row_weight.shape[0]);
        d_logs[j] = rows[j] < 0 ? 0 : d_row_weight[rows[j]] * rule.scaling;
        mean += shares[j] * d_logs[j];
      }
      for (int32_t j = 0; j < rule.k; ++j) {
        d_logs[j] = shares[j] * (d_logs[j] - (rule.normalise ? mean : 0));
        total += d_logs[j];
      }
      // Every expert's part in the softmax; with normalised weights it falls out, as total is 0.
      if (softmax && !rule.normalise) {
        const float minus = -total / sum;
        const V factor = hn::Set(d, minus);
        int64_t i = 0;
        for (; i + Lanes() <= n; i += Lanes())
          hn::StoreU(hn::Mul(hn::LoadU(d, scores + i), factor), d, out + i);
        for (; i < n; ++i) out[i] = scores[i] * minus;
      } else {
        std::fill_n(out, n, 0.0f);
      }
      for (int32_t j = 0; j < rule.k; ++j)
        out[experts[j]] += softmax ? d_logs[j] : d_logs[j] * sigmoid(-x[experts[j]]);
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Router);
HWY_EXPORT(RouterBackward);
constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
}  // namespace

int64_t router_workspace(const RouterArgs& args, int threads) {
  const int64_t padded = padded_row(args.logits.cols());
  return (padded + threads * (padded + choice_words(args.rule))) * kFloat;
}

const char* router(const RouterArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Router)(args, env);
}

int64_t router_backward_workspace(const RouterBackwardArgs& args, int threads) {
  return threads * (padded_row(args.logits.cols()) + 2 * args.rule.k) * kFloat;
}

const char* router_backward(const RouterBackwardArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(RouterBackward)(args, env);
}

}  // namespace rondo::cpu
#endif

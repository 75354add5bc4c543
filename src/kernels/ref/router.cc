#include "kernels/ref/router.h"

#include <limits>

#include "kernels/ref/floating.h"
#include "tensor/place.h"

namespace rondo::ref {
namespace {

// The best of those allowed that are not taken yet; of equal ones the first.
template <class T>
int64_t best_of(const std::vector<T>& values, const std::vector<char>& open) {
  int64_t best = -1;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i)
    if (open[i] && (best < 0 || values[i] > values[best])) best = i;
  return best;
}

// Marks the experts of the best groups.
template <class T>
std::vector<char> open_experts(const std::vector<T>& biased, const RouterRule& rule) {
  const auto n = static_cast<int64_t>(biased.size()), size = n / rule.n_group;
  std::vector<T> scores(rule.n_group);
  for (int64_t g = 0; g < rule.n_group; ++g) {
    std::vector<T> members(biased.begin() + g * size, biased.begin() + (g + 1) * size);
    std::sort(members.begin(), members.end(), std::greater<T>());
    scores[g] = members[0] + (size > 1 ? members[1] : T(0));
  }
  std::vector<char> open(n, 0), open_groups(rule.n_group, 1);
  for (int32_t i = 0; i < rule.topk_group; ++i) {
    const int64_t g = best_of(scores, open_groups);
    open_groups[g] = 0;
    std::fill_n(open.begin() + g * size, size, 1);
  }
  return open;
}

// The scores are rounded to T first: what a router in fp32 cannot tell apart is a tie.
template <class T>
void choose(const std::vector<double>& logs, const T* bias, const RouterRule& rule,
            int32_t* experts) {
  std::vector<T> biased(logs.size());
  for (size_t e = 0; e < logs.size(); ++e) {
    biased[e] = static_cast<T>(std::exp(logs[e])) + (bias ? bias[e] : T(0));
    // NaN compares with nothing; as the lowest, the choice stays one of distinct experts.
    if (std::isnan(biased[e])) biased[e] = -std::numeric_limits<T>::infinity();
  }
  std::vector<char> open = open_experts(biased, rule);
  for (int32_t j = 0; j < rule.k; ++j) {
    const int64_t e = best_of(biased, open);
    open[e] = 0;
    experts[j] = static_cast<int32_t>(e);
  }
}

// What the weights are before scaling.
std::vector<double> shares(const std::vector<double>& logs, const int32_t* experts,
                           const RouterRule& rule) {
  std::vector<double> out(rule.k);
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int32_t j = 0; j < rule.k; ++j) {
    RONDO_CHECK(experts[j] >= 0 && experts[j] < static_cast<int64_t>(logs.size()),
                "router: expert {} of {}", experts[j], logs.size());
    most = std::max(most, logs[experts[j]]);
  }
  for (int32_t j = 0; j < rule.k; ++j)
    sum += out[j] = std::exp(logs[experts[j]] - (rule.normalise ? most : 0));
  if (rule.normalise)
    for (double& w : out) w /= sum;
  return out;
}

}  // namespace

const char* router(const RouterArgs& args, KernelEnv&) {
  return by_dtype(args.logits, [&](auto zero) {
    using T = decltype(zero);
    const RouterRule& rule = args.rule;
    std::vector<double> logs(args.logits.cols());
    for (int64_t t = 0; t < args.logits.rows(); ++t) {
      int32_t* experts = row<int32_t>(args.experts, t);
      T* weights = row<T>(args.weights, t);
      const bool padding = row<int32_t>(args.places, t)[2] < 0;
      if (padding || (args.replay && experts[0] < 0)) {
        std::fill_n(weights, rule.k, T(0));
        if (!args.replay) std::fill_n(experts, rule.k, -1);
        continue;
      }
      log_scores(row<T>(args.logits, t), rule.scoring, logs);
      if (!args.replay) choose(logs, args.bias ? args.bias.as<T>() : nullptr, rule, experts);
      const std::vector<double> w = shares(logs, experts, rule);
      for (int32_t j = 0; j < rule.k; ++j) weights[j] = static_cast<T>(w[j] * rule.scaling);
    }
  });
}

const char* router_backward(const RouterBackwardArgs& args, KernelEnv&) {
  return by_dtype(args.logits, [&](auto zero) {
    using T = decltype(zero);
    const RouterRule& rule = args.rule;
    const bool softmax = rule.scoring == RouterRule::Scoring::kSoftmax;
    std::vector<double> logs(args.logits.cols()), d(logs.size());
    for (int64_t t = 0; t < args.logits.rows(); ++t) {
      const int32_t* experts = row<int32_t>(args.experts, t);
      const int32_t* rows = row<int32_t>(args.slot_row, t);
      T* out = row<T>(args.d_logits, t);
      std::fill(d.begin(), d.end(), 0.0);
      if (experts[0] >= 0) {
        const T* x = row<T>(args.logits, t);
        log_scores(x, rule.scoring, logs);
        const std::vector<double> share = shares(logs, experts, rule);
        std::vector<double> d_share(rule.k, 0);
        double mean = 0;
        for (int32_t j = 0; j < rule.k; ++j) {
          if (rows[j] < 0) continue;
          RONDO_CHECK(rows[j] < args.d_row_weight.shape[0], "router_backward: row {} of {}",
                      rows[j], args.d_row_weight.shape[0]);
          d_share[j] = double(args.d_row_weight.as<T>()[rows[j]]) * rule.scaling;
          mean += share[j] * d_share[j];
        }
        // By the logarithm of each score, and from there by the logits.
        double sum = 0;
        for (int32_t j = 0; j < rule.k; ++j) {
          const double d_log = share[j] * (d_share[j] - (rule.normalise ? mean : 0));
          d[experts[j]] += softmax ? d_log : d_log * std::exp(log_sigmoid(-double(x[experts[j]])));
          sum += d_log;
        }
        if (softmax)
          for (size_t e = 0; e < d.size(); ++e) d[e] -= std::exp(logs[e]) * sum;
      }
      for (size_t e = 0; e < d.size(); ++e) out[e] = static_cast<T>(d[e]);
    }
  });
}

}  // namespace rondo::ref

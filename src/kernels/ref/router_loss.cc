#include "kernels/ref/router_loss.h"

#include "kernels/ref/floating.h"
#include "kernels/ref/router.h"

namespace rondo::ref {
namespace {

// The document of token t among `docs`; negative for padding.
int32_t doc_of(const View& places, int64_t t, int64_t docs, const char* op) {
  const int32_t doc = row<int32_t>(places, t)[2];
  RONDO_CHECK(doc < docs, "{}: document {} of {}", op, doc, docs);
  return doc;
}

// Scores of a row, divided by their sum.
template <class T>
void normalised_scores(const T* x, RouterRule::Scoring scoring, std::vector<double>& out) {
  log_scores(x, scoring, out);
  const double norm = log_sum_exp(out.data(), static_cast<int64_t>(out.size()));
  for (double& p : out) p = std::exp(p - norm);
}

}  // namespace

const char* router_stats(const RouterStatsArgs& args, KernelEnv&) {
  return by_dtype(args.logits, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.logits.cols(), docs = args.counts.rows();
    std::vector<double> p(n), counts(docs * n, 0), sums(docs * n, 0), tokens(docs, 0);
    double z = 0;
    for (int64_t t = 0; t < args.logits.rows(); ++t) {
      const int32_t doc = doc_of(args.places, t, docs, args.kName);
      if (doc < 0) continue;
      const T* x = row<T>(args.logits, t);
      ++tokens[doc];
      for (int64_t j = 0; j < args.experts.cols(); ++j) {
        const int32_t e = row<int32_t>(args.experts, t)[j];
        RONDO_CHECK(e < n, "router_stats: expert {} of {}", e, n);
        if (e >= 0) ++counts[doc * n + e];
      }
      normalised_scores(x, args.scoring, p);
      for (int64_t e = 0; e < n; ++e) sums[doc * n + e] += p[e];
      const double norm = log_sum_exp(x, n);
      z += norm * norm;
    }
    for (int64_t d = 0; d < docs; ++d) {
      args.doc_tokens.as<T>()[d] = static_cast<T>(tokens[d]);
      for (int64_t e = 0; e < n; ++e) {
        row<T>(args.counts, d)[e] = static_cast<T>(counts[d * n + e]);
        row<T>(args.score_sum, d)[e] = static_cast<T>(sums[d * n + e]);
      }
    }
    args.z_sum.as<T>()[0] = static_cast<T>(z);
  });
}

const char* router_loss(const RouterLossArgs& args, KernelEnv&) {
  return by_dtype(args.counts, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.counts.cols();
    double balance = 0;
    for (int64_t d = 0; d < args.counts.rows(); ++d) {
      const double tokens = args.doc_tokens.as<T>()[d];
      if (tokens == 0) continue;
      double dot = 0;
      for (int64_t e = 0; e < n; ++e)
        dot += double(row<T>(args.counts, d)[e]) * row<T>(args.score_sum, d)[e];
      balance += static_cast<double>(n) / (args.k * tokens) * dot;
    }
    T* losses = args.losses.as<T>();
    losses[0] = static_cast<T>(losses[0] + args.balance_scale * balance);
    losses[1] = static_cast<T>(losses[1] + double(args.z_scale) * args.z_sum.as<T>()[0]);
  });
}

const char* router_loss_backward(const RouterLossBackwardArgs& args, KernelEnv&) {
  return by_dtype(args.logits, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.logits.cols(), docs = args.counts.rows();
    const bool softmax = args.scoring == RouterRule::Scoring::kSoftmax;
    std::vector<double> p(n);
    for (int64_t t = 0; t < args.logits.rows(); ++t) {
      const int32_t doc = doc_of(args.places, t, docs, args.kName);
      if (doc < 0) continue;
      const T* x = row<T>(args.logits, t);
      const T* counts = row<T>(args.counts, doc);
      normalised_scores(x, args.scoring, p);
      const double norm = log_sum_exp(x, n);
      const double slope = static_cast<double>(args.balance_scale) * static_cast<double>(n) /
                           (args.k * double(args.doc_tokens.as<T>()[doc]));
      double mean = 0;
      for (int64_t e = 0; e < n; ++e) mean += p[e] * counts[e];
      T* out = row<T>(args.d_logits, t);
      for (int64_t e = 0; e < n; ++e) {
        const double d_log = slope * p[e] * (counts[e] - mean);
        // ln of the score has the slope 1 - score by its logit; under softmax the common part
        // falls out of the normalisation.
        const double balance = softmax ? d_log : d_log * std::exp(log_sigmoid(-double(x[e])));
        const double z = 2 * args.z_scale * norm * std::exp(x[e] - norm);
        out[e] = static_cast<T>(out[e] + balance + z);
      }
    }
  });
}

}  // namespace rondo::ref

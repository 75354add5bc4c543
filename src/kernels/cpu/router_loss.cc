#include "kernels/cpu/router_loss.h"

#include <cmath>

#include "kernels/cpu/router.h"
#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/router_loss.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/router_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

using Scoring = RouterRule::Scoring;

HWY_INLINE int32_t DocOf(const View& places, int64_t t, int64_t docs, const char* op) {
  const int32_t doc = places.as<int32_t>()[t * places.stride[0] + 2];
  RONDO_CHECK(doc < docs, "{}: document {} of {}", op, doc, docs);
  return doc;
}

// What is proportional to the score, exp(log-score - largest log-score), from the logit, its
// distance's exponential e = exp(x - most) and its sigmoid's parts. Where every logit is negative
// the sigmoids may all be 0 in fp32; the shift by the largest goes into the exponential.
HWY_INLINE V Proportional(Scoring scoring, float most, V e, const Sigmoid& s) {
  if (scoring == Scoring::kSoftmax) return e;
  return hn::Div(most < 0 ? e : s.positive, s.below);
}

// Turns a padded row of logits into scores with a sum of 1; returns logsumexp^2.
HWY_INLINE float NormalisedScores(float* HWY_RESTRICT x, int64_t n, Scoring scoring) {
  const D d;
  const float most = Largest(x, n);
  V exponentials = hn::Zero(d), scores = hn::Zero(d);
  for (int64_t i = 0; i < n; i += Lanes()) {
    const V logit = hn::LoadU(d, x + i);
    const V e = ExpOrNan(d, hn::Sub(logit, hn::Set(d, most)));
    const V score =
        scoring == Scoring::kSoftmax ? e : Proportional(scoring, most, e, Sigmoid(logit));
    exponentials = hn::Add(exponentials, e);
    scores = hn::Add(scores, score);
    hn::StoreU(score, d, x + i);
  }
  const V sum = hn::Set(d, Sum(scores));
  for (int64_t i = 0; i < n; i += Lanes()) hn::StoreU(hn::Div(hn::LoadU(d, x + i), sum), d, x + i);
  const float norm = most + std::log(Sum(exponentials));
  return norm * norm;
}

// Adds rows [begin, end) of `scores` to their documents, for the columns of one vector. Each run of
// a document is summed apart first, which keeps long sums accurate.
HWY_INLINE void AddColumns(const RouterStatsArgs& args, const float* scores, int64_t begin,
                           int64_t end, int64_t i) {
  const D d;
  const int64_t n = args.logits.cols(), padded = padded_row(n), docs = args.counts.rows();
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  for (int64_t t = begin; t < end;) {
    const int32_t doc = DocOf(args.places, t, docs, args.kName);
    V sum = hn::Zero(d);
    for (; t < end && DocOf(args.places, t, docs, args.kName) == doc; ++t)
      if (doc >= 0) sum = hn::Add(sum, hn::LoadU(d, scores + (t - begin) * padded + i));
    if (doc < 0) continue;
    hn::Store(sum, d, lanes);
    float* out = args.score_sum.as<float>() + doc * args.score_sum.stride[0] + i;
    for (int64_t lane = 0; lane < std::min(Lanes(), n - i); ++lane) out[lane] += lanes[lane];
  }
}

// Chunks of tokens: first every row's scores into the workspace, then sums of columns, each column
// in the order of tokens. A last task of each chunk counts.
const char* Stats(const RouterStatsArgs& args, KernelEnv& env, int64_t chunk) {
  constexpr int64_t kColumns = 64;
  const int64_t n = args.logits.cols(), padded = padded_row(n), docs = args.counts.rows();
  float* scores = static_cast<float*>(env.workspace.data);
  float* norms = scores + std::min(chunk, args.logits.rows()) * padded;
  float* doc_tokens = args.doc_tokens.as<float>();
  for (int64_t doc = 0; doc < docs; ++doc) {
    std::fill_n(args.counts.as<float>() + doc * args.counts.stride[0], n, 0.0f);
    std::fill_n(args.score_sum.as<float>() + doc * args.score_sum.stride[0], n, 0.0f);
    doc_tokens[doc] = 0;
  }
  double z = 0;
  for (int64_t base = 0; base < args.logits.rows(); base += chunk) {
    const int64_t rows = std::min(chunk, args.logits.rows() - base);
    for_blocks(env.pool, rows, 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        if (DocOf(args.places, base + r, docs, args.kName) < 0) continue;
        float* row = scores + r * padded;
        PadLogits(args.logits.as<float>() + (base + r) * args.logits.stride[0], n, row);
        norms[r] = NormalisedScores(row, n, args.scoring);
      }
    });
    const int64_t tasks = (n + kColumns - 1) / kColumns;
    for_blocks(env.pool, tasks + 1, 1, [&](int64_t task, int64_t, int) {
      if (task < tasks) {
        const int64_t end = std::min(n, (task + 1) * kColumns);
        for (int64_t i = task * kColumns; i < end; i += Lanes())
          AddColumns(args, scores, base, base + rows, i);
        return;
      }
      for (int64_t r = 0; r < rows; ++r) {
        const int32_t doc = DocOf(args.places, base + r, docs, args.kName);
        if (doc < 0) continue;
        z += norms[r];
        doc_tokens[doc] += 1;
        const int32_t* experts = args.experts.as<int32_t>() + (base + r) * args.experts.stride[0];
        float* counts = args.counts.as<float>() + doc * args.counts.stride[0];
        for (int64_t j = 0; j < args.experts.cols(); ++j) {
          RONDO_CHECK(experts[j] < n, "router_stats: expert {} of {}", experts[j], n);
          if (experts[j] >= 0) counts[experts[j]] += 1;
        }
      }
    });
  }
  args.z_sum.as<float>()[0] = static_cast<float>(z);
  return hwy::TargetName(HWY_TARGET);
}

// Few numbers: one thread, and the sum over documents in double.
const char* Loss(const RouterLossArgs& args, KernelEnv&) {
  const D d;
  const int64_t n = args.counts.cols();
  double balance = 0;
  for (int64_t doc = 0; doc < args.counts.rows(); ++doc) {
    const double tokens = args.doc_tokens.as<float>()[doc];
    if (tokens == 0) continue;
    const float* counts = args.counts.as<float>() + doc * args.counts.stride[0];
    const float* sums = args.score_sum.as<float>() + doc * args.score_sum.stride[0];
    V dots = hn::Zero(d);
    float rest = 0;
    int64_t i = 0;
    for (; i + Lanes() <= n; i += Lanes())
      dots = hn::MulAdd(hn::LoadU(d, counts + i), hn::LoadU(d, sums + i), dots);
    for (; i < n; ++i) rest += counts[i] * sums[i];
    balance += static_cast<double>(n) / (args.k * tokens) * (double(Sum(dots)) + rest);
  }
  float* losses = args.losses.as<float>();
  losses[0] = static_cast<float>(losses[0] + args.balance_scale * balance);
  losses[1] = static_cast<float>(losses[1] + double(args.z_scale) * args.z_sum.as<float>()[0]);
  return hwy::TargetName(HWY_TARGET);
}

// Four padded rows of one worker.
struct Space {
  float *scores, *slopes, *exponentials, *counts;
};

// Leaves the gradient of a token's logits in space.scores. `balance`: scale * E / (k T_d).
HWY_INLINE void Gradient(const Space& space, int64_t n, Scoring scoring, float balance,
                         float z_scale) {
  const D d;
  const float most = Largest(space.scores, n);
  V all = hn::Zero(d), all_scores = hn::Zero(d), dots = hn::Zero(d);
  for (int64_t i = 0; i < n; i += Lanes()) {
    const V logit = hn::LoadU(d, space.scores + i);
    const V e = ExpOrNan(d, hn::Sub(logit, hn::Set(d, most)));
    V score = e, slope = hn::Set(d, 1);
    if (scoring == Scoring::kSigmoid) {
      const Sigmoid s(logit);
      score = Proportional(scoring, most, e, s);
      slope = hn::Div(s.negative, s.below);
    }
    all = hn::Add(all, e);
    all_scores = hn::Add(all_scores, score);
    dots = hn::MulAdd(score, hn::LoadU(d, space.counts + i), dots);
    hn::StoreU(score, d, space.scores + i);
    hn::StoreU(slope, d, space.slopes + i);
    hn::StoreU(e, d, space.exponentials + i);
  }
  const float sum = Sum(all), sum_scores = Sum(all_scores);
  const V mean = hn::Set(d, Sum(dots) / sum_scores), factor = hn::Set(d, balance / sum_scores);
  const V z = hn::Set(d, 2 * z_scale * (most + std::log(sum)) / sum);
  for (int64_t i = 0; i < n; i += Lanes()) {
    const V apart = hn::Sub(hn::LoadU(d, space.counts + i), mean);
    const V d_log = hn::Mul(hn::Mul(hn::LoadU(d, space.scores + i), factor), apart);
    hn::StoreU(hn::MulAdd(d_log, hn::LoadU(d, space.slopes + i),
                          hn::Mul(hn::LoadU(d, space.exponentials + i), z)),
               d, space.scores + i);
  }
}

const char* LossBackward(const RouterLossBackwardArgs& args, KernelEnv& env) {
  const D d;
  const int64_t n = args.logits.cols(), padded = padded_row(n), docs = args.counts.rows();
  for_blocks(env.pool, args.logits.rows(), 16, [&](int64_t begin, int64_t end, int worker) {
    Space space{};
    space.scores = static_cast<float*>(env.workspace.data) + worker * 4 * padded;
    space.slopes = space.scores + padded;
    space.exponentials = space.slopes + padded;
    space.counts = space.exponentials + padded;
    int32_t last = -1;
    for (int64_t t = begin; t < end; ++t) {
      const int32_t doc = DocOf(args.places, t, docs, args.kName);
      if (doc < 0) continue;
      if (doc != last)
        Pad(args.counts.as<float>() + doc * args.counts.stride[0], n, 0, space.counts);
      last = doc;
      PadLogits(args.logits.as<float>() + t * args.logits.stride[0], n, space.scores);
      const float tokens = args.doc_tokens.as<float>()[doc];
      const float scale =
          args.balance_scale * static_cast<float>(n) / (static_cast<float>(args.k) * tokens);
      Gradient(space, n, args.scoring, scale, args.z_scale);
      float* out = args.d_logits.as<float>() + t * args.d_logits.stride[0];
      int64_t i = 0;
      for (; i + Lanes() <= n; i += Lanes())
        hn::StoreU(hn::Add(hn::LoadU(d, out + i), hn::LoadU(d, space.scores + i)), d, out + i);
      for (; i < n; ++i) out[i] += space.scores[i];
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Stats);
HWY_EXPORT(Loss);
HWY_EXPORT(LossBackward);
constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
constexpr int64_t kChunk = 512;  // tokens whose scores wait in the workspace
}  // namespace

int64_t router_stats_workspace(const RouterStatsArgs& args, int) {
  return std::min(kChunk, args.logits.rows()) * (padded_row(args.logits.cols()) + 1) * kFloat;
}

const char* router_stats(const RouterStatsArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Stats)(args, env, kChunk);
}

const char* router_loss(const RouterLossArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Loss)(args, env);
}

int64_t router_loss_backward_workspace(const RouterLossBackwardArgs& args, int threads) {
  return threads * 4 * padded_row(args.logits.cols()) * kFloat;
}

const char* router_loss_backward(const RouterLossBackwardArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(LossBackward)(args, env);
}

}  // namespace rondo::cpu
#endif

#include "kernels/ref/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/ref/floating.h"

namespace rondo::ref {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The row of token t and head h of a view [tokens, heads, d].
template <class T>
T* head(const View& view, int64_t t, int64_t h) {
  return view.as<T>() + t * view.stride[0] + h * view.stride[1];
}

Place place(const View& places, int64_t t) {
  const int32_t* p = places.as<int32_t>() + t * places.stride[0];
  return {p[0], p[1], p[2], p[3]};
}

template <class T>
double dot(const T* a, const T* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

}  // namespace

const char* attention_block(const AttentionBlockArgs& args, KernelEnv&) {
  return by_dtype(args.q, [&](auto zero) {
    using T = decltype(zero);
    const int64_t dqk = args.q.shape[2], dv = args.v.shape[2];
    std::vector<double> a(dv), scores(args.k.shape[0]);
    for (int64_t t = 0; t < args.q.shape[0]; ++t) {
      const Place at = place(args.q_places, t);
      for (int64_t h = 0; h < args.q.shape[1]; ++h) {
        const int64_t kh = h / args.group();
        double m = args.first ? -kInf : row<T>(args.m, t)[h];
        double l = args.first ? 0 : row<T>(args.l, t)[h];
        T* out = head<T>(args.a, t, h);
        for (int64_t i = 0; i < dv; ++i) a[i] = args.first ? 0 : out[i];
        double top = m;
        for (int64_t s = 0; s < args.k.shape[0]; ++s) {
          scores[s] = -kInf;
          if (!attention_visible(at, place(args.k_places, s), args.window)) continue;
          scores[s] = args.scale * dot(head<T>(args.q, t, h), head<T>(args.k, s, kh), dqk);
          top = std::max(top, scores[s]);
        }
        if (top > m) {
          const double shrink = std::exp(m - top);  // 0 for an empty state
          l *= shrink;
          for (double& x : a) x *= shrink;
          m = top;
        }
        for (int64_t s = 0; s < args.k.shape[0]; ++s) {
          if (scores[s] == -kInf) continue;
          const double p = std::exp(scores[s] - m);
          l += p;
          double kept = p;
          if (args.dropout.p > 0)
            kept = attention_keep(args.dropout, h, at, place(args.k_places, s))
                       ? p / (1 - args.dropout.p)
                       : 0;
          if (kept == 0) continue;
          const T* v = head<T>(args.v, s, kh);
          for (int64_t i = 0; i < dv; ++i) a[i] += kept * v[i];
        }
        row<T>(args.m, t)[h] = static_cast<T>(m);
        row<T>(args.l, t)[h] = static_cast<T>(l);
        for (int64_t i = 0; i < dv; ++i) out[i] = static_cast<T>(a[i]);
      }
    }
  });
}

const char* attention_finish(const AttentionFinishArgs& args, KernelEnv&) {
  return by_dtype(args.a, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < args.a.shape[0]; ++t)
      for (int64_t h = 0; h < args.a.shape[1]; ++h) {
        const double l = row<T>(args.l, t)[h], m = row<T>(args.m, t)[h];
        const T* a = head<T>(args.a, t, h);
        T* o = head<T>(args.o, t, h);
        for (int64_t i = 0; i < args.a.shape[2]; ++i)
          o[i] = l != 0 ? static_cast<T>(a[i] / l) : T(0);
        row<T>(args.lse, t)[h] = static_cast<T>(l != 0 ? m + std::log(l) : -kInf);
      }
  });
}

const char* attention_delta(const AttentionDeltaArgs& args, KernelEnv&) {
  return by_dtype(args.o, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < args.o.shape[0]; ++t)
      for (int64_t h = 0; h < args.o.shape[1]; ++h)
        row<T>(args.delta, t)[h] =
            static_cast<T>(dot(head<T>(args.o, t, h), head<T>(args.d_o, t, h), args.o.shape[2]));
  });
}

const char* attention_backward(const AttentionBackwardArgs& args, KernelEnv&) {
  return by_dtype(args.q, [&](auto zero) {
    using T = decltype(zero);
    const int64_t tq = args.q.shape[0], tk = args.k.shape[0], hq = args.q.shape[1];
    const int64_t hk = args.k.shape[1], dqk = args.q.shape[2], dv = args.v.shape[2];
    std::vector<double> sum_q(tq * hq * dqk, 0), sum_k(tk * hk * dqk, 0), sum_v(tk * hk * dv, 0);
    for (int64_t t = 0; t < tq; ++t) {
      const Place at = place(args.q_places, t);
      for (int64_t h = 0; h < hq; ++h) {
        const int64_t kh = h / args.group();
        const double lse = row<T>(args.lse, t)[h], delta = row<T>(args.delta, t)[h];
        if (lse == -kInf) continue;
        const T* q = head<T>(args.q, t, h);
        const T* d_o = head<T>(args.d_o, t, h);
        double* dq = sum_q.data() + (t * hq + h) * dqk;
        for (int64_t s = 0; s < tk; ++s) {
          const Place key = place(args.k_places, s);
          if (!attention_visible(at, key, args.window)) continue;
          const T* k = head<T>(args.k, s, kh);
          const T* v = head<T>(args.v, s, kh);
          double* dk = sum_k.data() + (s * hk + kh) * dqk;
          double* d_v = sum_v.data() + (s * hk + kh) * dv;
          const double p = std::exp(args.scale * dot(q, k, dqk) - lse);
          double keep = 1;
          if (args.dropout.p > 0)
            keep = attention_keep(args.dropout, h, at, key) ? 1 / (1 - args.dropout.p) : 0;
          const double dp = keep > 0 ? keep * dot(d_o, v, dv) : 0;
          if (keep > 0)
            for (int64_t i = 0; i < dv; ++i) d_v[i] += p * keep * d_o[i];
          const double ds = p * (dp - delta) * args.scale;
          for (int64_t i = 0; i < dqk; ++i) {
            dq[i] += ds * k[i];
            dk[i] += ds * q[i];
          }
        }
      }
    }
    const auto store = [](const View& out, const std::vector<double>& sums, bool add) {
      const int64_t d = out.shape[2];
      for (int64_t t = 0; t < out.shape[0]; ++t)
        for (int64_t h = 0; h < out.shape[1]; ++h)
          for (int64_t i = 0; i < d; ++i) {
            T& x = head<T>(out, t, h)[i];
            const double sum = sums[(t * out.shape[1] + h) * d + i];
            x = static_cast<T>(add ? x + sum : sum);
          }
    };
    store(args.dq, sum_q, args.accumulate_dq);
    store(args.dk, sum_k, args.accumulate_dkv);
    store(args.dv, sum_v, args.accumulate_dkv);
  });
}

}  // namespace rondo::ref

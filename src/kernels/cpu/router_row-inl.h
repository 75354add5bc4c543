// Rows of logits as whole vectors, for each of Highway's targets: what the router's kernels share.
#if defined(RONDO_KERNELS_CPU_ROUTER_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_CPU_ROUTER_ROW_INL_H_
#undef RONDO_KERNELS_CPU_ROUTER_ROW_INL_H_
#else
#define RONDO_KERNELS_CPU_ROUTER_ROW_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "kernels/cpu/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE int64_t Lanes() {
  return static_cast<int64_t>(hn::Lanes(D()));
}

HWY_INLINE float Sum(V v) {
  return hn::GetLane(hn::SumOfLanes(D(), v));
}

// Copies n elements and fills up the last vector, so that the passes that follow have no tail.
HWY_INLINE void Pad(const float* x, int64_t n, float fill, float* HWY_RESTRICT out) {
  const D d;
  const int64_t lanes = Lanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::LoadU(d, x + i), d, out + i);
  if (i == n) return;
  hn::StoreU(hn::Set(d, fill), d, out + i);
  for (; i < n; ++i) out[i] = x[i];
}

// A logit of -inf adds nothing to any sum below.
HWY_INLINE void PadLogits(const float* x, int64_t n, float* HWY_RESTRICT out) {
  Pad(x, n, -std::numeric_limits<float>::infinity(), out);
}

// The largest of a padded row. NaN may be passed over: what is made with it shows it all the same.
HWY_INLINE float Largest(const float* x, int64_t n) {
  V most = hn::LoadU(D(), x);
  for (int64_t i = Lanes(); i < n; i += Lanes()) most = hn::Max(most, hn::LoadU(D(), x + i));
  return hn::GetLane(hn::MaxOfLanes(D(), most));
}

// sigmoid(x) = positive / below and sigmoid(-x) = negative / below, with the exponential of -|x|
// alone: nothing overflows or cancels at either sign.
struct Sigmoid {
  V positive, negative, below;
  HWY_INLINE explicit Sigmoid(V x) {
    const V one = hn::Set(D(), 1.0f), u = ExpOrNan(D(), hn::Neg(hn::Abs(x)));
    const auto is_negative = hn::Lt(x, hn::Zero(D()));
    positive = hn::IfThenElse(is_negative, u, one);
    negative = hn::IfThenElse(is_negative, one, u);
    below = hn::Add(one, u);
  }
};

// Turns a padded row into exp(x - most), and returns the sum.
HWY_INLINE float Exponentials(float* HWY_RESTRICT x, int64_t n, float most) {
  const D d;
  V sum = hn::Zero(d);
  for (int64_t i = 0; i < n; i += Lanes()) {
    const V e = ExpOrNan(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, most)));
    hn::StoreU(e, d, x + i);
    sum = hn::Add(sum, e);
  }
  return Sum(sum);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

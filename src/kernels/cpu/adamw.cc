#include "kernels/cpu/adamw.h"

#include <cmath>

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// What is the same for every element, worked out in double and rounded once, as torch does.
#ifndef RONDO_KERNELS_CPU_ADAMW_CC_
#define RONDO_KERNELS_CPU_ADAMW_CC_
namespace rondo::cpu {
struct AdamWStep {
  float grad_scale, decay, one_minus_beta1, beta2, one_minus_beta2, correction2, eps, minus_rate;
};
}  // namespace rondo::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// D of one lane for the tail. No fused operation: every element has the same bits whichever width
// handles it, on every instruction set, and the order of operations is torch's.
template <class D>
HWY_INLINE void Update(D d, const AdamWStep& s, const float* grad, float* HWY_RESTRICT p,
                       float* HWY_RESTRICT m, float* HWY_RESTRICT v) {
  const auto g = hn::Mul(hn::LoadU(d, grad), hn::Set(d, s.grad_scale));
  const auto m0 = hn::LoadU(d, m);
  const auto m1 = hn::Add(m0, hn::Mul(hn::Set(d, s.one_minus_beta1), hn::Sub(g, m0)));
  const auto v1 = hn::Add(hn::Mul(hn::LoadU(d, v), hn::Set(d, s.beta2)),
                          hn::Mul(hn::Mul(hn::Set(d, s.one_minus_beta2), g), g));
  const auto denominator =
      hn::Add(hn::Div(hn::Sqrt(v1), hn::Set(d, s.correction2)), hn::Set(d, s.eps));
  const auto decayed = hn::Mul(hn::LoadU(d, p), hn::Set(d, s.decay));
  hn::StoreU(m1, d, m);
  hn::StoreU(v1, d, v);
  hn::StoreU(hn::Add(decayed, hn::Div(hn::Mul(hn::Set(d, s.minus_rate), m1), denominator)), d, p);
}

const char* AdamW(const AdamWArgs& args, KernelEnv& env, const AdamWStep& step) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  float* p = args.p.as<float>();
  float* m = args.m.as<float>();
  float* v = args.v.as<float>();
  const float* grad = args.grad.as<float>();
  // 4 arrays of 64 KiB: long enough to stream, short enough to share out evenly.
  for_blocks(env.pool, args.p.elements(), 16384, [&](int64_t begin, int64_t end, int) {
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) Update(d, step, grad + i, p + i, m + i, v + i);
    for (; i < end; ++i) Update(one, step, grad + i, p + i, m + i, v + i);
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(AdamW);
}  // namespace

const char* adamw(const AdamWArgs& args, KernelEnv& env) {
  const double t = static_cast<double>(args.step);
  const AdamWStep step{.grad_scale = static_cast<float>(args.grad_scale),
                       .decay = static_cast<float>(1 - args.lr * args.weight_decay),
                       .one_minus_beta1 = static_cast<float>(1 - args.beta1),
                       .beta2 = static_cast<float>(args.beta2),
                       .one_minus_beta2 = static_cast<float>(1 - args.beta2),
                       .correction2 = static_cast<float>(std::sqrt(1 - std::pow(args.beta2, t))),
                       .eps = static_cast<float>(args.eps),
                       .minus_rate = static_cast<float>(-args.lr / (1 - std::pow(args.beta1, t)))};
  return HWY_DYNAMIC_DISPATCH(AdamW)(args, env, step);
}

}  // namespace rondo::cpu
#endif

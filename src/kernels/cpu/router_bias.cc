#include "kernels/cpu/adamw.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/router_bias.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Moves the biases of as many experts as a vector holds. What is below the mean is at most
// `below`, what is above it more than `floor`; at neither, nothing moves.
template <class D>
HWY_INLINE void Move(D d, const int64_t* counts, int64_t below, int64_t floor, float rate,
                     float* bias) {
  const hn::Rebind<double, D> wide;
  const hn::Rebind<float, D> narrow;
  const auto count = hn::LoadU(d, counts);
  const auto step = hn::Set(wide, double{rate});
  const auto is_above = hn::RebindMask(wide, hn::Gt(count, hn::Set(d, floor)));
  const auto is_below = hn::RebindMask(wide, hn::Gt(hn::Set(d, below + 1), count));
  const auto change =
      hn::Sub(hn::IfThenElseZero(is_below, step), hn::IfThenElseZero(is_above, step));
  hn::StoreU(hn::Add(hn::LoadU(narrow, bias), hn::DemoteTo(narrow, change)), narrow, bias);
}

// A number for each expert, once a step: no work for more than one thread.
const char* RouterBias(const RouterBiasArgs& args, KernelEnv&) {
  const hn::ScalableTag<int64_t> d;
  const hn::CappedTag<int64_t, 1> one;
  const int64_t n = args.counts.shape[0], lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t* counts = args.counts.as<int64_t>();
  float* bias = args.bias.as<float>();
  if (n == 0) return hwy::TargetName(HWY_TARGET);
  int64_t total = 0;
  for (int64_t e = 0; e < n; ++e) total += counts[e];
  // In integers: a count that is exactly the mean moves nothing.
  const int64_t floor = total / n, below = total % n > 0 ? floor : floor - 1;
  int64_t e = 0;
  for (; e + lanes <= n; e += lanes) Move(d, counts + e, below, floor, args.rate, bias + e);
  for (; e < n; ++e) Move(one, counts + e, below, floor, args.rate, bias + e);
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(RouterBias);
}  // namespace

const char* router_bias(const RouterBiasArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(RouterBias)(args, env);
}

}  // namespace rondo::cpu
#endif

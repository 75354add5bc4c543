#include "kernels/cpu/cross_entropy.h"

#include <cmath>

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/along-inl.h"
#include "kernels/cpu/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

using namespace row;

// One row; its exponentials are computed for the sum and again for the gradient, which is cheaper
// than another pass over memory.
inline float LossOf(float* x, int64_t n, int64_t label, bool gradient, float grad_scale) {
  const D d;
  V most = hn::Set(d, x[0]);
  Along(n, [&](int64_t i, auto lanes) { most = hn::Max(most, lanes.load_or(x + i, most)); });
  const float top = hn::GetLane(hn::MaxOfLanes(d, most));
  const V v_top = hn::Set(d, top);
  V sums = hn::Zero(d);
  Along(n, [&](int64_t i, auto lanes) {
    sums = hn::Add(sums, lanes.keep(ExpOrNan(d, hn::Sub(lanes.load(x + i), v_top))));
  });
  const float log_sum = std::log(Sum(sums));
  // Of large logits the difference is exact, their sum is not.
  const float loss = log_sum + (top - x[label]);
  if (!gradient) return loss;
  const V v_log = hn::Set(d, log_sum), scale = hn::Set(d, grad_scale);
  Along(n, [&](int64_t i, auto lanes) {
    const V shifted = hn::Sub(hn::Sub(lanes.load(x + i), v_top), v_log);
    lanes.store(hn::Mul(ExpOrNan(d, shifted), scale), x + i);
  });
  x[label] -= grad_scale;
  return loss;
}

const char* CrossEntropy(const CrossEntropyArgs& args, KernelEnv& env) {
  const int64_t n = args.logits.cols();
  for_blocks(env.pool, args.logits.rows(), 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      float* x = args.logits.as<float>() + t * args.logits.stride[0];
      const int32_t label = args.labels.as<int32_t>()[t];
      float& loss = args.loss.as<float>()[t];
      if (label == kIgnoreLabel) {
        loss = 0;
        if (args.gradient) std::fill(x, x + n, 0.0f);
        continue;
      }
      RONDO_CHECK(label >= 0 && label < n, "cross_entropy: label {} of {}", label, n);
      loss = LossOf(x, n, label, args.gradient, args.grad_scale);
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(CrossEntropy);
}  // namespace

const char* cross_entropy(const CrossEntropyArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropy)(args, env);
}

}  // namespace rondo::cpu
#endif

#include "kernels/cpu/reduce.h"

#include <cmath>

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Adds in double.
inline double SumOf(const float* x, int64_t n, ReduceArgs::Kind kind) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(wide));
  const auto term = [&](auto v) {
    switch (kind) {
      case ReduceArgs::Kind::kSum:
        return v;
      case ReduceArgs::Kind::kSumSquares:
        return hn::Mul(v, v);
      case ReduceArgs::Kind::kNonfinite:
        break;
    }
    // x - x is 0 where x is finite, and NaN elsewhere.
    return hn::IfThenElseZero(hn::IsNaN(hn::Sub(v, v)), hn::Set(wide, 1.0));
  };
  auto even = hn::Zero(wide), odd = hn::Zero(wide);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    even = hn::Add(even, term(hn::PromoteTo(wide, hn::LoadU(narrow, x + i))));
    odd = hn::Add(odd, term(hn::PromoteTo(wide, hn::LoadU(narrow, x + i + lanes))));
  }
  double rest = 0;
  for (; i < n; ++i) {
    const double v = x[i];
    rest += kind == ReduceArgs::Kind::kSum          ? v
            : kind == ReduceArgs::Kind::kSumSquares ? v * v
                                                    : (std::isfinite(v) ? 0 : 1);
  }
  return hn::GetLane(hn::SumOfLanes(wide, hn::Add(even, odd))) + rest;
}

const char* Reduce(const ReduceArgs& args, KernelEnv& env, int64_t block) {
  const float* x = args.x.as<float>();
  double* sums = static_cast<double*>(env.workspace.data);
  for_blocks(env.pool, args.x.elements(), block, [&](int64_t begin, int64_t end, int) {
    sums[begin / block] = SumOf(x + begin, end - begin, args.kind);
  });
  double total = 0;
  for (int64_t i = 0; i * block < args.x.elements(); ++i) total += sums[i];
  args.y.as<double>()[0] += args.scale * total;
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Reduce);
constexpr int64_t kBlock = 16 << 10;  // elements of one partial sum
}  // namespace

int64_t reduce_workspace(const ReduceArgs& args, int) {
  return (args.x.elements() + kBlock - 1) / kBlock * static_cast<int64_t>(sizeof(double));
}

const char* reduce(const ReduceArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Reduce)(args, env, kBlock);
}

}  // namespace rondo::cpu
#endif

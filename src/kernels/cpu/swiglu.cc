#include "kernels/cpu/swiglu.h"

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/swiglu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/along-inl.h"
#include "kernels/cpu/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

using namespace row;

// The exponential of -|x| cannot overflow.
HWY_INLINE V Sigmoid(V x) {
  const D d;
  const V one = hn::Set(d, 1.0f), e = ExpOrNan(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

inline int64_t ValidRows(const View& offsets, int64_t rows) {
  return offsets ? offsets.as<int32_t>()[offsets.shape[0] - 1] : rows;
}

inline float WeightOf(const View& weights, const View& row_slot, int64_t r) {
  return weights ? weights.as<float>()[row_slot.as<int32_t>()[r]] : 1.0f;
}

const char* Forward(const SwigluArgs& args, KernelEnv& env) {
  const D d;
  const int64_t n = args.y.cols();
  for_blocks(env.pool, ValidRows(args.offsets, args.x.rows()), 16,
             [&](int64_t begin, int64_t end, int) {
               for (int64_t r = begin; r < end; ++r) {
                 const float* gate = args.x.as<float>() + r * args.x.stride[0];
                 const float* up = gate + n;
                 float* y = args.y.as<float>() + r * args.y.stride[0];
                 const V weight = hn::Set(d, WeightOf(args.weights, args.row_slot, r));
                 Along(n, [&](int64_t i, auto lanes) {
                   const V g = lanes.load(gate + i);
                   const V silu = hn::Mul(g, Sigmoid(g));
                   lanes.store(hn::Mul(hn::Mul(silu, lanes.load(up + i)), weight), y + i);
                 });
               }
             });
  return hwy::TargetName(HWY_TARGET);
}

const char* Backward(const SwigluBackwardArgs& args, KernelEnv& env) {
  const D d;
  const int64_t n = args.dy.cols();
  for_blocks(
      env.pool, ValidRows(args.offsets, args.x.rows()), 16, [&](int64_t begin, int64_t end, int) {
        for (int64_t r = begin; r < end; ++r) {
          const float* x = args.x.as<float>() + r * args.x.stride[0];
          const float* dy = args.dy.as<float>() + r * args.dy.stride[0];
          float* dx = args.dx.as<float>() + r * args.dx.stride[0];
          float* y = args.y ? args.y.as<float>() + r * args.y.stride[0] : nullptr;
          const V weight = hn::Set(d, WeightOf(args.weights, args.row_slot, r));
          V d_weight = hn::Zero(d);
          Along(n, [&](int64_t i, auto lanes) {
            const V gate = lanes.load(x + i), up = lanes.load(x + n + i), g = lanes.load(dy + i);
            const V s = Sigmoid(gate), silu = hn::Mul(gate, s), product = hn::Mul(silu, up);
            d_weight = hn::MulAdd(g, product, d_weight);  // past the row g is 0
            const V scaled = hn::Mul(g, weight);
            // d silu = s (1 + gate (1 - s))
            const V slope = hn::MulAdd(silu, hn::Sub(hn::Set(d, 1.0f), s), s);
            lanes.store(hn::Mul(hn::Mul(scaled, up), slope), dx + i);
            lanes.store(hn::Mul(scaled, silu), dx + n + i);
            if (y) lanes.store(hn::Mul(product, weight), y + i);
          });
          if (args.weights) args.d_row_weight.as<float>()[r] = Sum(d_weight);
        }
      });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Forward);
HWY_EXPORT(Backward);
}  // namespace

const char* swiglu(const SwigluArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Forward)(args, env);
}

const char* swiglu_backward(const SwigluBackwardArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Backward)(args, env);
}

}  // namespace rondo::cpu
#endif

#include "kernels/cpu/rms_norm.h"

#include <cmath>

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rms_norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Calls body(i, vector load/store tag) over whole vectors and leaves the rest to `tail`, so that
// nothing past the row is touched.
template <class Body, class Tail>
HWY_INLINE void along(int64_t n, Body body, Tail tail) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i);
  for (; i < n; ++i) tail(i);
}

const char* Forward(const RmsNormArgs& args, KernelEnv& env) {
  const D d;
  const int64_t n = args.x.cols();
  const float* HWY_RESTRICT w = args.w.as<float>();
  for_blocks(env.pool, args.x.rows(), 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = args.x.as<float>() + r * args.x.stride[0];
      V squares = hn::Zero(d);
      float rest = 0;
      if (args.residual) {
        const float* residual = args.residual.as<float>() + r * args.residual.stride[0];
        float* sum = args.sum.as<float>() + r * args.sum.stride[0];
        along(
            n,
            [&](int64_t i) {
              const V s = hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, residual + i));
              hn::StoreU(s, d, sum + i);
              squares = hn::MulAdd(s, s, squares);
            },
            [&](int64_t i) {
              sum[i] = x[i] + residual[i];
              rest += sum[i] * sum[i];
            });
        x = sum;
      } else {
        along(
            n,
            [&](int64_t i) {
              const V s = hn::LoadU(d, x + i);
              squares = hn::MulAdd(s, s, squares);
            },
            [&](int64_t i) { rest += x[i] * x[i]; });
      }
      const float total = hn::GetLane(hn::SumOfLanes(d, squares)) + rest;
      const float inv = 1 / std::sqrt(total / static_cast<float>(n) + args.eps);
      args.inv_rms.as<float>()[r] = inv;
      float* y = args.y.as<float>() + r * args.y.stride[0];
      const V scale = hn::Set(d, inv);
      along(
          n,
          [&](int64_t i) {
            hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + i), scale), hn::LoadU(d, w + i)), d, y + i);
          },
          [&](int64_t i) { y[i] = x[i] * inv * w[i]; });
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

// Blocks of rows write their own row of partial sums of dw, which are then added in order.
const char* Backward(const RmsNormBackwardArgs& args, KernelEnv& env, int64_t block) {
  const D d;
  const int64_t n = args.x.cols();
  const float* HWY_RESTRICT w = args.w.as<float>();
  float* partials = static_cast<float*>(env.workspace.data);
  for_blocks(env.pool, args.x.rows(), block, [&](int64_t begin, int64_t end, int) {
    float* HWY_RESTRICT dw = partials + begin / block * n;
    for (int64_t i = 0; i < n; ++i) dw[i] = 0;
    for (int64_t r = begin; r < end; ++r) {
      const float* x = args.x.as<float>() + r * args.x.stride[0];
      const float* dy = args.dy.as<float>() + r * args.dy.stride[0];
      float* dx = args.dx.as<float>() + r * args.dx.stride[0];
      const float inv = args.inv_rms.as<float>()[r];
      V dots = hn::Zero(d);
      float rest = 0;
      along(
          n,
          [&](int64_t i) {
            const V g = hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, w + i));
            dots = hn::MulAdd(g, hn::LoadU(d, x + i), dots);
          },
          [&](int64_t i) { rest += dy[i] * w[i] * x[i]; });
      const float mean =
          (hn::GetLane(hn::SumOfLanes(d, dots)) + rest) * inv / static_cast<float>(n);
      const V v_inv = hn::Set(d, inv), v_mean = hn::Set(d, mean);
      const bool add = args.accumulate_dx;
      along(
          n,
          [&](int64_t i) {
            const V normed = hn::Mul(hn::LoadU(d, x + i), v_inv);
            const V g = hn::LoadU(d, dy + i);
            hn::StoreU(hn::MulAdd(g, normed, hn::LoadU(d, dw + i)), d, dw + i);
            V out = hn::Mul(hn::NegMulAdd(normed, v_mean, hn::Mul(g, hn::LoadU(d, w + i))), v_inv);
            if (add) out = hn::Add(hn::LoadU(d, dx + i), out);
            hn::StoreU(out, d, dx + i);
          },
          [&](int64_t i) {
            const float normed = x[i] * inv, g = dy[i];
            dw[i] += g * normed;
            const float out = (g * w[i] - normed * mean) * inv;
            dx[i] = add ? dx[i] + out : out;
          });
    }
  });
  const int64_t blocks = (args.x.rows() + block - 1) / block;
  float* dw = args.dw.as<float>();
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t i = 0; i < n; ++i) dw[i] += partials[b * n + i];
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Forward);
HWY_EXPORT(Backward);
constexpr int64_t kBlock = 64;  // rows of one partial sum of dw
}  // namespace

const char* rms_norm(const RmsNormArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Forward)(args, env);
}

int64_t rms_norm_backward_workspace(const RmsNormBackwardArgs& args, int) {
  return (args.x.rows() + kBlock - 1) / kBlock * args.x.cols() *
         static_cast<int64_t>(sizeof(float));
}

const char* rms_norm_backward(const RmsNormBackwardArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Backward)(args, env, kBlock);
}

}  // namespace rondo::cpu
#endif

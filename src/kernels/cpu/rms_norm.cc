#include "kernels/cpu/rms_norm.h"

#include <cmath>

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rms_norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/along-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

using namespace row;

const char* Forward(const RmsNormArgs& args, KernelEnv& env) {
  const D d;
  const int64_t n = args.x.cols();
  const float* w = args.w.as<float>();
  for_blocks(env.pool, args.x.rows(), 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = args.x.as<float>() + r * args.x.stride[0];
      V squares = hn::Zero(d);
      if (args.residual) {
        const float* residual = args.residual.as<float>() + r * args.residual.stride[0];
        float* sum = args.sum.as<float>() + r * args.sum.stride[0];
        Along(n, [&](int64_t i, auto lanes) {
          const V s = hn::Add(lanes.load(x + i), lanes.load(residual + i));
          lanes.store(s, sum + i);
          squares = hn::MulAdd(s, s, squares);
        });
        x = sum;
      } else {
        Along(n, [&](int64_t i, auto lanes) {
          const V s = lanes.load(x + i);
          squares = hn::MulAdd(s, s, squares);
        });
      }
      const float inv = 1 / std::sqrt(Sum(squares) / static_cast<float>(n) + args.eps);
      args.inv_rms.as<float>()[r] = inv;
      float* y = args.y.as<float>() + r * args.y.stride[0];
      const V scale = hn::Set(d, inv);
      Along(n, [&](int64_t i, auto lanes) {
        lanes.store(hn::Mul(hn::Mul(lanes.load(x + i), scale), lanes.load(w + i)), y + i);
      });
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

// Blocks of rows write their own row of partial sums of dw, which are then added in order.
const char* Backward(const RmsNormBackwardArgs& args, KernelEnv& env, int64_t block) {
  const D d;
  const int64_t n = args.x.cols();
  const float* w = args.w.as<float>();
  float* partials = static_cast<float*>(env.workspace.data);
  for_blocks(env.pool, args.x.rows(), block, [&](int64_t begin, int64_t end, int) {
    float* dw = partials + begin / block * n;
    std::fill_n(dw, n, 0.0f);
    for (int64_t r = begin; r < end; ++r) {
      const float* x = args.x.as<float>() + r * args.x.stride[0];
      const float* dy = args.dy.as<float>() + r * args.dy.stride[0];
      float* dx = args.dx.as<float>() + r * args.dx.stride[0];
      const V inv = hn::Set(d, args.inv_rms.as<float>()[r]);
      V dots = hn::Zero(d);
      Along(n, [&](int64_t i, auto lanes) {
        const V g = hn::Mul(lanes.load(dy + i), lanes.load(w + i));
        dots = hn::MulAdd(g, lanes.load(x + i), dots);
      });
      const V mean = hn::Mul(hn::Set(d, Sum(dots) / static_cast<float>(n)), inv);
      Along(n, [&](int64_t i, auto lanes) {
        const V normed = hn::Mul(lanes.load(x + i), inv), g = lanes.load(dy + i);
        lanes.store(hn::MulAdd(g, normed, lanes.load(dw + i)), dw + i);
        V out = hn::Mul(hn::NegMulAdd(normed, mean, hn::Mul(g, lanes.load(w + i))), inv);
        if (args.accumulate_dx) out = hn::Add(lanes.load(dx + i), out);
        lanes.store(out, dx + i);
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

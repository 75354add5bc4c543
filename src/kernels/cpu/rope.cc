#include "kernels/cpu/rope.h"

#include <cmath>

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Needs the target that foreach_target sets.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Highway's sine and cosine in double hold for angles up to 39 million.
constexpr double kLargestAngle = 3e7;

const char* Table(const RopeTableArgs& args, KernelEnv& env) {
  const hn::ScalableTag<double> d;
  const int64_t half = args.cos.cols(), lanes = static_cast<int64_t>(hn::Lanes(d));
  const double* inv_freq = args.inv_freq.as<double>();
  for_blocks(env.pool, args.places.rows(), 16, [&](int64_t begin, int64_t end, int) {
    HWY_ALIGN double c[hn::MaxLanes(d)] = {}, s[hn::MaxLanes(d)] = {};
    for (int64_t t = begin; t < end; ++t) {
      const double pos = args.places.as<int32_t>()[t * args.places.stride[0] + 3];
      float* cos = args.cos.as<float>() + t * args.cos.stride[0];
      float* sin = args.sin.as<float>() + t * args.sin.stride[0];
      for (int64_t i = 0; i < half; i += lanes) {
        const int64_t some = std::min(lanes, half - i);
        double most = 0;
        for (int64_t j = 0; j < lanes; ++j) {
          c[j] = j < some ? pos * inv_freq[i + j] : 0;
          most = std::max(most, std::abs(c[j]));
        }
        if (most < kLargestAngle) {
          const auto angle = hn::Load(d, c);
          hn::Store(hn::Cos(d, angle), d, c);
          hn::Store(hn::Sin(d, angle), d, s);
        } else {
          for (int64_t j = 0; j < some; ++j) {
            s[j] = std::sin(c[j]);
            c[j] = std::cos(c[j]);
          }
        }
        for (int64_t j = 0; j < some; ++j) {
          cos[i + j] = static_cast<float>(c[j] * args.scale);
          sin[i + j] = static_cast<float>(s[j] * args.scale);
        }
      }
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

// Turns one head. `sign` is -1 for the inverse. y may be x.
struct Turn {
  const float* cos;
  const float* sin;
  int64_t half;
  float sign;
  bool interleave;

  template <bool kAdd>
  HWY_INLINE void run(const float* x, float* y) const {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const V v_sign = hn::Set(d, sign);
    int64_t i = 0;
    for (; i + lanes <= half; i += lanes) {
      const V c = hn::LoadU(d, cos + i), s = hn::Mul(hn::LoadU(d, sin + i), v_sign);
      V a, b, old_a = hn::Zero(d), old_b = hn::Zero(d);
      if (interleave) {
        hn::LoadInterleaved2(d, x + 2 * i, a, b);
        if (kAdd) hn::LoadInterleaved2(d, y + 2 * i, old_a, old_b);
      } else {
        a = hn::LoadU(d, x + i);
        b = hn::LoadU(d, x + half + i);
        if (kAdd) {
          old_a = hn::LoadU(d, y + i);
          old_b = hn::LoadU(d, y + half + i);
        }
      }
      V turned_a = hn::Sub(hn::Mul(a, c), hn::Mul(b, s));
      V turned_b = hn::Add(hn::Mul(b, c), hn::Mul(a, s));
      if (kAdd) {
        turned_a = hn::Add(old_a, turned_a);
        turned_b = hn::Add(old_b, turned_b);
      }
      if (interleave) {
        hn::StoreInterleaved2(turned_a, turned_b, d, y + 2 * i);
      } else {
        hn::StoreU(turned_a, d, y + i);
        hn::StoreU(turned_b, d, y + half + i);
      }
    }
    for (; i < half; ++i) {
      const int64_t at = interleave ? 2 * i : i, other = interleave ? at + 1 : i + half;
      const float a = x[at], b = x[other], s = sign * sin[i];
      const float turned_a = a * cos[i] - b * s, turned_b = b * cos[i] + a * s;
      y[at] = kAdd ? y[at] + turned_a : turned_a;
      y[other] = kAdd ? y[other] + turned_b : turned_b;
    }
  }
};

const char* Rope(const RopeArgs& args, KernelEnv& env) {
  const int64_t d = args.x.shape[2], x_heads = args.x.shape[1], y_heads = args.y.shape[1];
  float* turned = static_cast<float*>(env.workspace.data);
  for_blocks(env.pool, args.x.shape[0], 16, [&](int64_t begin, int64_t end, int worker) {
    float* room = turned + worker * d;
    for (int64_t t = begin; t < end; ++t) {
      const float* x = args.x.as<float>() + t * args.x.stride[0];
      float* y = args.y.as<float>() + t * args.y.stride[0];
      const Turn turn{args.cos.as<float>() + t * args.cos.stride[0],
                      args.sin.as<float>() + t * args.sin.stride[0], d / 2,
                      args.inverse ? -1.0f : 1.0f, args.interleave};
      if (x_heads == y_heads) {
        for (int64_t h = 0; h < x_heads; ++h)
          turn.run<false>(x + h * args.x.stride[1], y + h * args.y.stride[1]);
        continue;
      }
      // One side has one head; y may lie over x, so the result is made apart.
      turn.run<false>(x, room);
      for (int64_t h = 1; h < x_heads; ++h) turn.run<true>(x + h * args.x.stride[1], room);
      for (int64_t h = 0; h < y_heads; ++h) std::copy_n(room, d, y + h * args.y.stride[1]);
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Table);
HWY_EXPORT(Rope);
}  // namespace

const char* rope_table(const RopeTableArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Table)(args, env);
}

int64_t rope_workspace(const RopeArgs& args, int threads) {
  if (args.x.shape[1] == args.y.shape[1]) return 0;
  return args.x.shape[2] * threads * static_cast<int64_t>(sizeof(float));
}

const char* rope(const RopeArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Rope)(args, env);
}

}  // namespace rondo::cpu
#endif

#include "kernels/peak.h"

#include <chrono>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/peak.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// `rounds` times 12 independent chains of multiply-adds; gives FLOPs, and a sum that must be used.
double Chains(int64_t rounds, float& sink) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, 0.999f), y = hn::Set(d, 0.001f);
  // Different beginnings: equal chains would be folded into one.
  auto a = hn::Set(d, 1.0f), b = hn::Set(d, 1.1f), c = hn::Set(d, 1.2f), e = hn::Set(d, 1.3f);
  auto f = hn::Set(d, 1.4f), g = hn::Set(d, 1.5f), h = hn::Set(d, 1.6f), i = hn::Set(d, 1.7f);
  auto j = hn::Set(d, 1.8f), k = hn::Set(d, 1.9f), l = hn::Set(d, 2.0f), m = hn::Set(d, 2.1f);
  for (int64_t r = 0; r < rounds; ++r) {
    a = hn::MulAdd(a, x, y);
    b = hn::MulAdd(b, x, y);
    c = hn::MulAdd(c, x, y);
    e = hn::MulAdd(e, x, y);
    f = hn::MulAdd(f, x, y);
    g = hn::MulAdd(g, x, y);
    h = hn::MulAdd(h, x, y);
    i = hn::MulAdd(i, x, y);
    j = hn::MulAdd(j, x, y);
    k = hn::MulAdd(k, x, y);
    l = hn::MulAdd(l, x, y);
    m = hn::MulAdd(m, x, y);
  }
  const auto sum = hn::Add(
      hn::Add(hn::Add(a, b), hn::Add(c, e)),
      hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), hn::Add(hn::Add(j, k), hn::Add(l, m))));
  sink = hn::GetLane(sum);
  return 24.0 * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
}

const char* Name() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo {
namespace cpu {
namespace {
HWY_EXPORT(Chains);
HWY_EXPORT(Name);

double chains(int64_t rounds, float& sink) {
  return HWY_DYNAMIC_DISPATCH(Chains)(rounds, sink);
}

const char* target() {
  return HWY_DYNAMIC_DISPATCH(Name)();
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
}  // namespace
}  // namespace cpu

Peak measure_peak(ThreadPool& pool) {
  Peak peak;
  peak.target = cpu::target();
  const int threads = pool.threads();
  std::vector<float> sinks(static_cast<size_t>(threads) * 16);
  std::vector<double> flops(static_cast<size_t>(threads));
  for (int tries = 0; tries < 12; ++tries) {  // the best: other processes only take away
    const auto begin = std::chrono::steady_clock::now();
    pool.run(threads, [&](int64_t t, int) {
      const size_t i = static_cast<size_t>(t);
      flops[i] = cpu::chains(500'000, sinks[i * 16]);
    });
    double sum = 0;
    for (const double f : flops) sum += f;
    peak.gflops = std::max(peak.gflops, sum / cpu::seconds_since(begin) / 1e9);
  }
  constexpr int64_t kPart = int64_t{1} << 20, kParts = 8;  // floats: three arrays of 32 MiB
  std::vector<float> a(kPart * kParts, 1), b(kPart * kParts, 2), c(kPart * kParts, 3);
  for (int tries = 0; tries < 3; ++tries) {
    const auto begin = std::chrono::steady_clock::now();
    pool.run(kParts, [&](int64_t part, int) {
      for (int64_t i = part * kPart; i < (part + 1) * kPart; ++i)
        a[static_cast<size_t>(i)] = b[static_cast<size_t>(i)] + 0.5f * c[static_cast<size_t>(i)];
    });
    peak.gigabytes =
        std::max(peak.gigabytes, 12.0 * kPart * kParts / cpu::seconds_since(begin) / 1e9);
  }
  return peak;
}

}  // namespace rondo
#endif

// A loop over a row as whole vectors and one part of a vector, for each of Highway's targets:
// nothing past the row is read or written.
//
//   Along(n, [&](int64_t i, auto lanes) {
//     lanes.store(hn::Add(lanes.load(x + i), lanes.load(y + i)), y + i);
//   });
#if defined(RONDO_KERNELS_CPU_ALONG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_CPU_ALONG_INL_H_
#undef RONDO_KERNELS_CPU_ALONG_INL_H_
#else
#define RONDO_KERNELS_CPU_ALONG_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {
namespace row {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

struct Whole {
  HWY_INLINE V load(const float* p) const { return hn::LoadU(D(), p); }
  HWY_INLINE V load_or(const float* p, V) const { return load(p); }
  HWY_INLINE void store(V v, float* p) const { hn::StoreU(v, D(), p); }
  HWY_INLINE V keep(V v) const { return v; }
};

struct Part {
  hn::Mask<D> mask;
  HWY_INLINE V load(const float* p) const { return hn::MaskedLoad(mask, D(), p); }
  // Lanes past the row are the other's.
  HWY_INLINE V load_or(const float* p, V other) const {
    return hn::IfThenElse(mask, load(p), other);
  }
  HWY_INLINE void store(V v, float* p) const { hn::BlendedStore(v, mask, D(), p); }
  // Lanes past the row become 0: before a sum.
  HWY_INLINE V keep(V v) const { return hn::IfThenElseZero(mask, v); }
};

HWY_INLINE float Sum(V v) {
  return hn::GetLane(hn::SumOfLanes(D(), v));
}

template <class Body>
HWY_INLINE void Along(int64_t n, Body body) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, Whole());
  if (i < n) body(i, Part{hn::FirstN(D(), static_cast<size_t>(n - i))});
}

}  // namespace row
}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// The exponential of whole vectors, for each of Highway's targets.
#if defined(RONDO_KERNELS_CPU_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_CPU_EXP_INL_H_
#undef RONDO_KERNELS_CPU_EXP_INL_H_
#else
#define RONDO_KERNELS_CPU_EXP_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

// Highway's own makes 0 of NaN, and a broken model would look well.
template <class Tag, class Vector = hwy::HWY_NAMESPACE::Vec<Tag>>
HWY_INLINE Vector ExpOrNan(Tag d, Vector x) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

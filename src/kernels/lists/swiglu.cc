#include "kernels/cpu/swiglu.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/swiglu.h"

namespace rondo {

template <>
std::span<const Implementation<SwigluArgs>> implementations<SwigluArgs>() {
  static constexpr Implementation<SwigluArgs> kList[] = {
      {"cpu", [](const SwigluArgs& a) { return cpu::f32_only(a.x); }, nullptr, cpu::swiglu},
      {"reference", nullptr, nullptr, ref::swiglu},
  };
  return kList;
}

template <>
std::span<const Implementation<SwigluBackwardArgs>> implementations<SwigluBackwardArgs>() {
  static constexpr Implementation<SwigluBackwardArgs> kList[] = {
      {"cpu", [](const SwigluBackwardArgs& a) { return cpu::f32_only(a.x); }, nullptr,
       cpu::swiglu_backward},
      {"reference", nullptr, nullptr, ref::swiglu_backward},
  };
  return kList;
}

}  // namespace rondo

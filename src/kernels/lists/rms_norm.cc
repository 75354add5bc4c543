#include "kernels/cpu/rms_norm.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/rms_norm.h"

namespace rondo {

template <>
std::span<const Implementation<RmsNormArgs>> implementations<RmsNormArgs>() {
  static constexpr Implementation<RmsNormArgs> kList[] = {
      {"cpu", [](const RmsNormArgs& a) { return cpu::f32_only(a.x); }, nullptr, cpu::rms_norm},
      {"reference", nullptr, nullptr, ref::rms_norm},
  };
  return kList;
}

template <>
std::span<const Implementation<RmsNormBackwardArgs>> implementations<RmsNormBackwardArgs>() {
  static constexpr Implementation<RmsNormBackwardArgs> kList[] = {
      {"cpu", [](const RmsNormBackwardArgs& a) { return cpu::f32_only(a.x); },
       cpu::rms_norm_backward_workspace, cpu::rms_norm_backward},
      {"reference", nullptr, nullptr, ref::rms_norm_backward},
  };
  return kList;
}

}  // namespace rondo

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/elementwise.h"

namespace rondo {

template <>
std::span<const Implementation<FillArgs>> implementations<FillArgs>() {
  static constexpr Implementation<FillArgs> kList[] = {
      {"cpu", [](const FillArgs& a) { return cpu::f32_only(a.y); }, nullptr, cpu::fill},
      {"reference", nullptr, nullptr, ref::fill},
  };
  return kList;
}

template <>
std::span<const Implementation<AxpbyArgs>> implementations<AxpbyArgs>() {
  static constexpr Implementation<AxpbyArgs> kList[] = {
      {"cpu", [](const AxpbyArgs& a) { return cpu::f32_only(a.x); }, nullptr, cpu::axpby},
      {"reference", nullptr, nullptr, ref::axpby},
  };
  return kList;
}

template <>
std::span<const Implementation<DropoutArgs>> implementations<DropoutArgs>() {
  static constexpr Implementation<DropoutArgs> kList[] = {
      {"cpu", [](const DropoutArgs& a) { return cpu::f32_only(a.x); }, nullptr, cpu::dropout},
      {"reference", nullptr, nullptr, ref::dropout},
  };
  return kList;
}

}  // namespace rondo

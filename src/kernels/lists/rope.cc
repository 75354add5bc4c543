#include "kernels/cpu/rope.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/rope.h"

namespace rondo {

template <>
std::span<const Implementation<RopeTableArgs>> implementations<RopeTableArgs>() {
  static constexpr Implementation<RopeTableArgs> kList[] = {
      {"cpu", [](const RopeTableArgs& a) { return cpu::f32_only(a.cos); }, nullptr,
       cpu::rope_table},
      {"reference", nullptr, nullptr, ref::rope_table},
  };
  return kList;
}

template <>
std::span<const Implementation<RopeArgs>> implementations<RopeArgs>() {
  static constexpr Implementation<RopeArgs> kList[] = {
      {"cpu", [](const RopeArgs& a) { return cpu::f32_only(a.x); }, cpu::rope_workspace, cpu::rope},
      {"reference", nullptr, nullptr, ref::rope},
  };
  return kList;
}

}  // namespace rondo

#include "kernels/cpu/adamw.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/adamw.h"

namespace rondo {

template <>
std::span<const Implementation<AdamWArgs>> implementations<AdamWArgs>() {
  static constexpr Implementation<AdamWArgs> kList[] = {
      {"cpu", [](const AdamWArgs& a) { return cpu::f32_only(a.p); }, nullptr, cpu::adamw},
      {"reference", nullptr, nullptr, ref::adamw},
  };
  return kList;
}

template <>
std::span<const Implementation<RouterBiasArgs>> implementations<RouterBiasArgs>() {
  static constexpr Implementation<RouterBiasArgs> kList[] = {
      {"cpu", [](const RouterBiasArgs& a) { return cpu::f32_only(a.bias); }, nullptr,
       cpu::router_bias},
      {"reference", nullptr, nullptr, ref::router_bias},
  };
  return kList;
}

}  // namespace rondo

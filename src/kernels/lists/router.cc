#include "kernels/cpu/router.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/router.h"

namespace rondo {

template <>
std::span<const Implementation<RouterArgs>> implementations<RouterArgs>() {
  static constexpr Implementation<RouterArgs> kList[] = {
      {"cpu", [](const RouterArgs& a) { return cpu::f32_only(a.logits); }, cpu::router_workspace,
       cpu::router},
      {"reference", nullptr, nullptr, ref::router},
  };
  return kList;
}

template <>
std::span<const Implementation<RouterBackwardArgs>> implementations<RouterBackwardArgs>() {
  static constexpr Implementation<RouterBackwardArgs> kList[] = {
      {"cpu", [](const RouterBackwardArgs& a) { return cpu::f32_only(a.logits); },
       cpu::router_backward_workspace, cpu::router_backward},
      {"reference", nullptr, nullptr, ref::router_backward},
  };
  return kList;
}

}  // namespace rondo

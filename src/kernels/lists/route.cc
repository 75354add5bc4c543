#include "kernels/cpu/route.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/route.h"

namespace rondo {

template <>
std::span<const Implementation<RoutePlanArgs>> implementations<RoutePlanArgs>() {
  static constexpr Implementation<RoutePlanArgs> kList[] = {
      {"cpu", nullptr, cpu::route_plan_workspace, cpu::route_plan},
      {"reference", nullptr, nullptr, ref::route_plan},
  };
  return kList;
}

template <>
std::span<const Implementation<CombineArgs>> implementations<CombineArgs>() {
  static constexpr Implementation<CombineArgs> kList[] = {
      {"cpu", [](const CombineArgs& a) { return cpu::f32_only(a.x); }, nullptr, cpu::combine},
      {"reference", nullptr, nullptr, ref::combine},
  };
  return kList;
}

}  // namespace rondo

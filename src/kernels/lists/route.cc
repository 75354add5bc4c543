#include "kernels/ref/route.h"

namespace rondo {

template <>
std::span<const Implementation<RoutePlanArgs>> implementations<RoutePlanArgs>() {
  static constexpr Implementation<RoutePlanArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::route_plan},
  };
  return kList;
}

template <>
std::span<const Implementation<CombineArgs>> implementations<CombineArgs>() {
  static constexpr Implementation<CombineArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::combine},
  };
  return kList;
}

}  // namespace rondo

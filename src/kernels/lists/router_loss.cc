#include "kernels/ref/router_loss.h"

namespace rondo {

template <>
std::span<const Implementation<RouterStatsArgs>> implementations<RouterStatsArgs>() {
  static constexpr Implementation<RouterStatsArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::router_stats},
  };
  return kList;
}

template <>
std::span<const Implementation<RouterLossArgs>> implementations<RouterLossArgs>() {
  static constexpr Implementation<RouterLossArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::router_loss},
  };
  return kList;
}

template <>
std::span<const Implementation<RouterLossBackwardArgs>> implementations<RouterLossBackwardArgs>() {
  static constexpr Implementation<RouterLossBackwardArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::router_loss_backward},
  };
  return kList;
}

}  // namespace rondo

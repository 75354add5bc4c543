#include "kernels/cpu/router_loss.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/router_loss.h"

namespace rondo {

template <>
std::span<const Implementation<RouterStatsArgs>> implementations<RouterStatsArgs>() {
  static constexpr Implementation<RouterStatsArgs> kList[] = {
      {"cpu", [](const RouterStatsArgs& a) { return cpu::f32_only(a.logits); },
       cpu::router_stats_workspace, cpu::router_stats},
      {"reference", nullptr, nullptr, ref::router_stats},
  };
  return kList;
}

template <>
std::span<const Implementation<RouterLossArgs>> implementations<RouterLossArgs>() {
  static constexpr Implementation<RouterLossArgs> kList[] = {
      {"cpu", [](const RouterLossArgs& a) { return cpu::f32_only(a.counts); }, nullptr,
       cpu::router_loss},
      {"reference", nullptr, nullptr, ref::router_loss},
  };
  return kList;
}

template <>
std::span<const Implementation<RouterLossBackwardArgs>> implementations<RouterLossBackwardArgs>() {
  static constexpr Implementation<RouterLossBackwardArgs> kList[] = {
      {"cpu", [](const RouterLossBackwardArgs& a) { return cpu::f32_only(a.logits); },
       cpu::router_loss_backward_workspace, cpu::router_loss_backward},
      {"reference", nullptr, nullptr, ref::router_loss_backward},
  };
  return kList;
}

}  // namespace rondo

#include "kernels/cpu/grouped_gemm.h"

#include "kernels/cpu/f32_only.h"
#include "kernels/ref/grouped_gemm.h"

namespace rondo {

template <>
std::span<const Implementation<GroupedGemmArgs>> implementations<GroupedGemmArgs>() {
  static constexpr Implementation<GroupedGemmArgs> kList[] = {
      {"cpu", [](const GroupedGemmArgs& a) { return cpu::f32_only(a.c); },
       cpu::grouped_gemm_workspace, cpu::grouped_gemm},
      {"reference", nullptr, nullptr, ref::grouped_gemm},
  };
  return kList;
}

template <>
std::span<const Implementation<GroupedWgradArgs>> implementations<GroupedWgradArgs>() {
  static constexpr Implementation<GroupedWgradArgs> kList[] = {
      {"cpu", [](const GroupedWgradArgs& a) { return cpu::f32_only(a.c); },
       cpu::grouped_wgrad_workspace, cpu::grouped_wgrad},
      {"reference", nullptr, nullptr, ref::grouped_wgrad},
  };
  return kList;
}

}  // namespace rondo

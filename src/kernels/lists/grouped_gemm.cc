#include "kernels/ref/grouped_gemm.h"

namespace rondo {

template <>
std::span<const Implementation<GroupedGemmArgs>> implementations<GroupedGemmArgs>() {
  static constexpr Implementation<GroupedGemmArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::grouped_gemm},
  };
  return kList;
}

template <>
std::span<const Implementation<GroupedWgradArgs>> implementations<GroupedWgradArgs>() {
  static constexpr Implementation<GroupedWgradArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::grouped_wgrad},
  };
  return kList;
}

}  // namespace rondo

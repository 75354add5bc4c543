#include "kernels/cpu/gemm.h"

#include "kernels/cpu/f32_only.h"
#include "kernels/ref/gemm.h"

namespace rondo {

template <>
std::span<const Implementation<GemmArgs>> implementations<GemmArgs>() {
  static constexpr Implementation<GemmArgs> kList[] = {
      {"cpu", [](const GemmArgs& a) { return cpu::f32_only(a.c); }, cpu::gemm_workspace, cpu::gemm},
      {"reference", nullptr, nullptr, ref::gemm},
  };
  return kList;
}

}  // namespace rondo

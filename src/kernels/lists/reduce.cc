#include "kernels/cpu/reduce.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/reduce.h"

namespace rondo {

template <>
std::span<const Implementation<ReduceArgs>> implementations<ReduceArgs>() {
  static constexpr Implementation<ReduceArgs> kList[] = {
      {"cpu", [](const ReduceArgs& a) { return cpu::f32_only(a.x); }, cpu::reduce_workspace,
       cpu::reduce},
      {"reference", nullptr, nullptr, ref::reduce},
  };
  return kList;
}

}  // namespace rondo

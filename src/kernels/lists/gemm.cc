#include "kernels/ref/gemm.h"

namespace rondo {

template <>
std::span<const Implementation<GemmArgs>> implementations<GemmArgs>() {
  static constexpr Implementation<GemmArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::gemm},
  };
  return kList;
}

}  // namespace rondo

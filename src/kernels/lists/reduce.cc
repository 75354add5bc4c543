#include "kernels/ref/reduce.h"

namespace rondo {

template <>
std::span<const Implementation<ReduceArgs>> implementations<ReduceArgs>() {
  static constexpr Implementation<ReduceArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::reduce},
  };
  return kList;
}

}  // namespace rondo

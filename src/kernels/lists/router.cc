#include "kernels/ref/router.h"

namespace rondo {

template <>
std::span<const Implementation<RouterArgs>> implementations<RouterArgs>() {
  static constexpr Implementation<RouterArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::router},
  };
  return kList;
}

template <>
std::span<const Implementation<RouterBackwardArgs>> implementations<RouterBackwardArgs>() {
  static constexpr Implementation<RouterBackwardArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::router_backward},
  };
  return kList;
}

}  // namespace rondo

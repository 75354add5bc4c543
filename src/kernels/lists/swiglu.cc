#include "kernels/ref/swiglu.h"

namespace rondo {

template <>
std::span<const Implementation<SwigluArgs>> implementations<SwigluArgs>() {
  static constexpr Implementation<SwigluArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::swiglu},
  };
  return kList;
}

template <>
std::span<const Implementation<SwigluBackwardArgs>> implementations<SwigluBackwardArgs>() {
  static constexpr Implementation<SwigluBackwardArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::swiglu_backward},
  };
  return kList;
}

}  // namespace rondo

#include "kernels/ref/elementwise.h"

namespace rondo {

template <>
std::span<const Implementation<FillArgs>> implementations<FillArgs>() {
  static constexpr Implementation<FillArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::fill},
  };
  return kList;
}

template <>
std::span<const Implementation<AxpbyArgs>> implementations<AxpbyArgs>() {
  static constexpr Implementation<AxpbyArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::axpby},
  };
  return kList;
}

template <>
std::span<const Implementation<DropoutArgs>> implementations<DropoutArgs>() {
  static constexpr Implementation<DropoutArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::dropout},
  };
  return kList;
}

}  // namespace rondo

#include "kernels/ref/rope.h"

namespace rondo {

template <>
std::span<const Implementation<RopeTableArgs>> implementations<RopeTableArgs>() {
  static constexpr Implementation<RopeTableArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::rope_table},
  };
  return kList;
}

template <>
std::span<const Implementation<RopeArgs>> implementations<RopeArgs>() {
  static constexpr Implementation<RopeArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::rope},
  };
  return kList;
}

}  // namespace rondo

#include "kernels/ref/adamw.h"

namespace rondo {

template <>
std::span<const Implementation<AdamWArgs>> implementations<AdamWArgs>() {
  static constexpr Implementation<AdamWArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::adamw},
  };
  return kList;
}

template <>
std::span<const Implementation<RouterBiasArgs>> implementations<RouterBiasArgs>() {
  static constexpr Implementation<RouterBiasArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::router_bias},
  };
  return kList;
}

}  // namespace rondo

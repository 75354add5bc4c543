#include "kernels/ref/cross_entropy.h"

namespace rondo {

template <>
std::span<const Implementation<CrossEntropyArgs>> implementations<CrossEntropyArgs>() {
  static constexpr Implementation<CrossEntropyArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::cross_entropy},
  };
  return kList;
}

}  // namespace rondo

#include "kernels/cpu/cross_entropy.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/cross_entropy.h"

namespace rondo {

template <>
std::span<const Implementation<CrossEntropyArgs>> implementations<CrossEntropyArgs>() {
  static constexpr Implementation<CrossEntropyArgs> kList[] = {
      {"cpu", [](const CrossEntropyArgs& a) { return cpu::f32_only(a.logits); }, nullptr,
       cpu::cross_entropy},
      {"reference", nullptr, nullptr, ref::cross_entropy},
  };
  return kList;
}

}  // namespace rondo

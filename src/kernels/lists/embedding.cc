#include "kernels/cpu/embedding.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/embedding.h"

namespace rondo {

template <>
std::span<const Implementation<EmbeddingArgs>> implementations<EmbeddingArgs>() {
  static constexpr Implementation<EmbeddingArgs> kList[] = {
      {"cpu", [](const EmbeddingArgs& a) { return cpu::f32_only(a.table); }, nullptr,
       cpu::embedding},
      {"reference", nullptr, nullptr, ref::embedding},
  };
  return kList;
}

template <>
std::span<const Implementation<EmbeddingBackwardArgs>> implementations<EmbeddingBackwardArgs>() {
  static constexpr Implementation<EmbeddingBackwardArgs> kList[] = {
      {"cpu", [](const EmbeddingBackwardArgs& a) { return cpu::f32_only(a.dy); }, nullptr,
       cpu::embedding_backward},
      {"reference", nullptr, nullptr, ref::embedding_backward},
  };
  return kList;
}

}  // namespace rondo

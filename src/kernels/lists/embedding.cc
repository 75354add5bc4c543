#include "kernels/ref/embedding.h"

namespace rondo {

template <>
std::span<const Implementation<EmbeddingArgs>> implementations<EmbeddingArgs>() {
  static constexpr Implementation<EmbeddingArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::embedding},
  };
  return kList;
}

template <>
std::span<const Implementation<EmbeddingBackwardArgs>> implementations<EmbeddingBackwardArgs>() {
  static constexpr Implementation<EmbeddingBackwardArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::embedding_backward},
  };
  return kList;
}

}  // namespace rondo

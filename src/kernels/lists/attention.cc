#include "kernels/ref/attention.h"

namespace rondo {

template <>
std::span<const Implementation<AttentionBlockArgs>> implementations<AttentionBlockArgs>() {
  static constexpr Implementation<AttentionBlockArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::attention_block},
  };
  return kList;
}

template <>
std::span<const Implementation<AttentionFinishArgs>> implementations<AttentionFinishArgs>() {
  static constexpr Implementation<AttentionFinishArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::attention_finish},
  };
  return kList;
}

template <>
std::span<const Implementation<AttentionDeltaArgs>> implementations<AttentionDeltaArgs>() {
  static constexpr Implementation<AttentionDeltaArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::attention_delta},
  };
  return kList;
}

template <>
std::span<const Implementation<AttentionBackwardArgs>> implementations<AttentionBackwardArgs>() {
  static constexpr Implementation<AttentionBackwardArgs> kList[] = {
      {"reference", nullptr, nullptr, ref::attention_backward},
  };
  return kList;
}

}  // namespace rondo

#include "kernels/cpu/attention.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/attention.h"

namespace rondo {

template <>
std::span<const Implementation<AttentionBlockArgs>> implementations<AttentionBlockArgs>() {
  static constexpr Implementation<AttentionBlockArgs> kList[] = {
      {"cpu", [](const AttentionBlockArgs& a) { return cpu::f32_only(a.q); },
       cpu::attention_block_workspace, cpu::attention_block},
      {"reference", nullptr, nullptr, ref::attention_block},
  };
  return kList;
}

template <>
std::span<const Implementation<AttentionFinishArgs>> implementations<AttentionFinishArgs>() {
  static constexpr Implementation<AttentionFinishArgs> kList[] = {
      {"cpu", [](const AttentionFinishArgs& a) { return cpu::f32_only(a.a); }, nullptr,
       cpu::attention_finish},
      {"reference", nullptr, nullptr, ref::attention_finish},
  };
  return kList;
}

template <>
std::span<const Implementation<AttentionDeltaArgs>> implementations<AttentionDeltaArgs>() {
  static constexpr Implementation<AttentionDeltaArgs> kList[] = {
      {"cpu", [](const AttentionDeltaArgs& a) { return cpu::f32_only(a.o); }, nullptr,
       cpu::attention_delta},
      {"reference", nullptr, nullptr, ref::attention_delta},
  };
  return kList;
}

template <>
std::span<const Implementation<AttentionBackwardArgs>> implementations<AttentionBackwardArgs>() {
  static constexpr Implementation<AttentionBackwardArgs> kList[] = {
      {"cpu", [](const AttentionBackwardArgs& a) { return cpu::f32_only(a.q); },
       cpu::attention_backward_workspace, cpu::attention_backward},
      {"reference", nullptr, nullptr, ref::attention_backward},
  };
  return kList;
}

}  // namespace rondo

#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/f32_only.h"
#include "kernels/ref/dispatch.h"

namespace rondo {

template <>
std::span<const Implementation<DispatchCountArgs>> implementations<DispatchCountArgs>() {
  static constexpr Implementation<DispatchCountArgs> kList[] = {
      {"cpu", nullptr, nullptr, cpu::dispatch_count},
      {"reference", nullptr, nullptr, ref::dispatch_count},
  };
  return kList;
}

template <>
std::span<const Implementation<DispatchPackArgs>> implementations<DispatchPackArgs>() {
  static constexpr Implementation<DispatchPackArgs> kList[] = {
      {"cpu", [](const DispatchPackArgs& a) { return cpu::f32_only(a.x); },
       cpu::dispatch_pack_workspace, cpu::dispatch_pack},
      {"reference", nullptr, nullptr, ref::dispatch_pack},
  };
  return kList;
}

template <>
std::span<const Implementation<DispatchUnpackArgs>> implementations<DispatchUnpackArgs>() {
  static constexpr Implementation<DispatchUnpackArgs> kList[] = {
      {"cpu", [](const DispatchUnpackArgs& a) { return cpu::f32_only(a.rows); }, nullptr,
       cpu::dispatch_unpack},
      {"reference", nullptr, nullptr, ref::dispatch_unpack},
  };
  return kList;
}

template <>
std::span<const Implementation<ReturnPackArgs>> implementations<ReturnPackArgs>() {
  static constexpr Implementation<ReturnPackArgs> kList[] = {
      {"cpu", [](const ReturnPackArgs& a) { return cpu::f32_only(a.x); },
       cpu::return_pack_workspace, cpu::return_pack},
      {"reference", nullptr, nullptr, ref::return_pack},
  };
  return kList;
}

}  // namespace rondo

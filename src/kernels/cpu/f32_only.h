#pragma once

#include "kernels/op.h"

namespace rondo::cpu {

// The refusal of a vectorised kernel: it takes f32 alone. `view` is the main input.
inline const char* f32_only(const View& view) {
  return view.dtype == DType::kF32 ? nullptr : "takes f32 only";
}

}  // namespace rondo::cpu

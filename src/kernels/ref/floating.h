// How a reference serves f32 and f64 with one loop.
#pragma once

#include "kernels/op.h"

namespace rondo::ref {

// Calls f(T{}) with T the element type of `view`: float or double.
template <class F>
const char* by_dtype(const View& view, F&& f) {
  if (view.dtype == DType::kF64) {
    f(double{});
  } else {
    RONDO_CHECK(view.dtype == DType::kF32, "a reference takes f32 or f64, not {}",
                name_of(view.dtype));
    f(float{});
  }
  return "scalar";
}

// Row r of a matrix.
template <class T>
T* row(const View& view, int64_t r) {
  return view.as<T>() + r * view.stride[0];
}

}  // namespace rondo::ref

// A view: a pointer with dtype, shape, strides and the memory it points into. Trivially copyable,
// no ownership: it goes by value into kernels, messages and, later, foreign callers.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "tensor/dtype.h"

namespace rondo {

constexpr int kMaxRank = 4;

// Which memory `data` points into. Only a kernel that runs on a device's stream may touch kDevice
// memory; host code that does so faults on the emulated device.
enum class Memory : uint8_t { kHost, kDevice };

struct View {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Memory memory = Memory::kHost;
  int8_t rank = 0;
  std::array<int64_t, kMaxRank> shape{};   // elements
  std::array<int64_t, kMaxRank> stride{};  // elements; the last is 1 for every kernel here

  View() = default;
  // Dense, row-major.
  View(void* data, DType dtype, Memory memory, std::initializer_list<int64_t> shape);

  explicit operator bool() const { return data != nullptr; }
  int64_t elements() const;
  int64_t bytes() const { return elements() * static_cast<int64_t>(size_of(dtype)); }
  bool is_dense() const;  // row-major without gaps
  // Of a matrix: shape[0] rows of shape[1] columns, `row_stride` apart.
  int64_t rows() const { return shape[0]; }
  int64_t cols() const { return shape[1]; }
  int64_t row_stride() const { return stride[0]; }

  // The elements, checked for the dtype.
  template <class T>
  T* as() const {
    RONDO_CHECK((DTypeOf<std::remove_const_t<T>>::value == dtype), "view is {}", name_of(dtype));
    return static_cast<T*>(data);
  }

  // [begin, end) of dimension `dim`; no copy.
  View slice(int dim, int64_t begin, int64_t end) const;
  // The i-th slice of the first dimension, one rank less.
  View operator[](int64_t i) const;
  // The same elements in another shape; the view must be dense.
  View reshape(std::initializer_list<int64_t> shape) const;
  // As a matrix [product of all but the last, last]; the leading dimensions must be dense.
  View matrix() const;
};
static_assert(std::is_trivially_copyable_v<View>);

std::string to_string(const View& view);  // "f32[3, 4]"
bool same_shape(const View& a, const View& b);

}  // namespace rondo

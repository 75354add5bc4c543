#include "tensor/view.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace rondo {

View::View(void* data, DType dtype, Memory memory, std::initializer_list<int64_t> dims)
    : data(data), dtype(dtype), memory(memory), rank(static_cast<int8_t>(dims.size())) {
  RONDO_CHECK(dims.size() <= kMaxRank, "rank {}", dims.size());
  std::copy(dims.begin(), dims.end(), shape.begin());
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    RONDO_CHECK(shape[i] >= 0, "dimension {} is {}", i, shape[i]);
    stride[i] = step;
    step *= shape[i];
  }
}

int64_t View::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= shape[i];
  return n;
}

bool View::is_dense() const {
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (shape[i] != 1 && stride[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

View View::slice(int dim, int64_t begin, int64_t end) const {
  RONDO_CHECK(dim < rank && 0 <= begin && begin <= end && end <= shape[dim],
              "slice {} [{}, {}) of {}", dim, begin, end, to_string(*this));
  View out = *this;
  out.data =
      static_cast<std::byte*>(data) + begin * stride[dim] * static_cast<int64_t>(size_of(dtype));
  out.shape[dim] = end - begin;
  return out;
}

View View::operator[](int64_t i) const {
  RONDO_CHECK(rank >= 1 && i >= 0 && i < shape[0], "[{}] of {}", i, to_string(*this));
  View out = slice(0, i, i + 1);
  std::copy(shape.begin() + 1, shape.end(), out.shape.begin());
  std::copy(stride.begin() + 1, stride.end(), out.stride.begin());
  --out.rank;
  out.shape[kMaxRank - 1] = out.stride[kMaxRank - 1] = 0;
  return out;
}

View View::reshape(std::initializer_list<int64_t> dims) const {
  View out(data, dtype, memory, dims);
  RONDO_CHECK(is_dense() && out.elements() == elements(), "{} as {}", to_string(*this),
              to_string(out));
  return out;
}

View View::matrix() const {
  RONDO_CHECK(rank >= 1, "scalar as a matrix");
  if (rank == 1) return reshape({1, shape[0]});
  View out = *this;
  for (int i = rank - 3; i >= 0; --i)
    RONDO_CHECK(stride[i] == stride[i + 1] * shape[i + 1], "{} has gaps", to_string(*this));
  int64_t rows = 1;
  for (int i = 0; i + 1 < rank; ++i) rows *= shape[i];
  out.rank = 2;
  out.shape = {rows, shape[rank - 1]};
  out.stride = {stride[rank - 2], stride[rank - 1]};
  return out;
}

std::string to_string(const View& view) {
  return fmt::format("{}[{}]", name_of(view.dtype),
                     fmt::join(view.shape.begin(), view.shape.begin() + view.rank, ", "));
}

bool same_shape(const View& a, const View& b) {
  return a.rank == b.rank && a.shape == b.shape;
}

}  // namespace rondo

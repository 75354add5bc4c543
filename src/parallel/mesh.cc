#include "parallel/mesh.h"

#include "base/error.h"

namespace rondo {
namespace {

std::string divisors(int64_t n) {
  std::string out;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) out += (out.empty() ? "" : ", ") + std::to_string(d);
  return out;
}

}  // namespace

Mesh::Mesh(const MeshSizes& wanted, int64_t world) {
  const auto or_one = [](int64_t n) { return n > 0 ? n : 1; };
  tensor_ = or_one(wanted.tensor);
  context_ = or_one(wanted.context);
  expert_ = or_one(wanted.expert);
  const int64_t inner = context_ * tensor_;
  if (world % inner != 0)
    fail_input(
        "parallel: context {} x tensor {} = {} does not divide the {} ranks; their product must be "
        "one of {}",
        context_, tensor_, inner, world, divisors(world));
  data_ = world / inner;
  if (wanted.data > 0 && wanted.data != data_)
    fail_input(
        "parallel: data {} x context {} x tensor {} = {} ranks, but there are {}; data = {} fits",
        wanted.data, context_, tensor_, wanted.data * inner, world, data_);
  if (world % expert_ != 0)
    fail_input("parallel: expert {} does not divide the {} ranks; it may be one of {}", expert_,
               world, divisors(world));
}

int Mesh::size(Axis axis) const {
  switch (axis) {
    case Axis::kData:
      return static_cast<int>(data_);
    case Axis::kContext:
      return static_cast<int>(context_);
    case Axis::kTensor:
      return static_cast<int>(tensor_);
    case Axis::kExpert:
      return static_cast<int>(expert_);
    case Axis::kExpertData:
      return static_cast<int>(world() / expert_);
    case Axis::kDense:
      return static_cast<int>(data_ * context_);
  }
  return 1;
}

int Mesh::coordinate(Axis axis, int rank) const {
  const int tensor = static_cast<int>(tensor_), context = static_cast<int>(context_);
  const int expert = static_cast<int>(expert_);
  switch (axis) {
    case Axis::kData:
      return rank / (tensor * context);
    case Axis::kContext:
      return rank / tensor % context;
    case Axis::kTensor:
      return rank % tensor;
    case Axis::kExpert:
      return rank % expert;
    case Axis::kExpertData:
      return rank / expert;
    case Axis::kDense:
      return rank / tensor;
  }
  return 0;
}

// The coordinates that the group shares.
int Mesh::color(Axis axis, int rank) const {
  const int tensor = static_cast<int>(tensor_), context = static_cast<int>(context_);
  switch (axis) {
    case Axis::kData:
      return rank % (tensor * context);
    case Axis::kContext:
      return coordinate(Axis::kData, rank) * tensor + coordinate(Axis::kTensor, rank);
    case Axis::kTensor:
      return rank / tensor;
    case Axis::kExpert:
      return coordinate(Axis::kExpertData, rank);
    case Axis::kExpertData:
      return coordinate(Axis::kExpert, rank);
    case Axis::kDense:
      return coordinate(Axis::kTensor, rank);
  }
  return 0;
}

std::string Mesh::describe() const {
  std::string out;
  const auto add = [&](const char* name, int64_t n) {
    if (n > 1) out += (out.empty() ? "" : " x ") + std::string(name) + " " + std::to_string(n);
  };
  add("data", data_);
  add("context", context_);
  add("tensor", tensor_);
  if (expert_ > 1) out += ", expert " + std::to_string(expert_);
  return out.empty() ? "one rank" : out;
}

}  // namespace rondo

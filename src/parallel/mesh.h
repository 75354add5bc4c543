// The ranks of a run on named axes. World = data x context x tensor, tensor fastest: neighbours on
// the tensor axis are neighbours in the world, then those on the context axis. `expert` splits the
// same order once more, expert fastest, and expert_data = world / expert holds the replicas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rondo {

enum class Axis : uint8_t {
  kData,        // other samples
  kContext,     // other tokens of the same samples
  kTensor,      // other columns of the same matrices
  kExpert,      // other experts
  kExpertData,  // replicas of the same experts
  kDense,       // data x context: replicas of what is not expert, tensor apart
};

struct MeshSizes {
  int64_t data = 0, context = 0, tensor = 0, expert = 0;  // 0: left out
};

class Mesh {
 public:
  // One rank.
  Mesh() = default;
  // What is left out is derived: tensor, context and expert are 1, data is what remains. InputError
  // with one line that says what would fit: sizes that do not make `world`, an expert axis that
  // does not divide it.
  Mesh(const MeshSizes& wanted, int64_t world);

  int64_t world() const { return data_ * context_ * tensor_; }
  int size(Axis axis) const;
  // Where a world rank stands on an axis.
  int coordinate(Axis axis, int rank) const;
  // Equal for the ranks that share an axis' group, different for others: for Communicator::split,
  // with the coordinate as key.
  int color(Axis axis, int rank) const;
  // "data 2 x context 4", without axes of one rank; "one rank".
  std::string describe() const;

 private:
  int64_t data_ = 1, context_ = 1, tensor_ = 1, expert_ = 1;
};

}  // namespace rondo

#include "parallel/mesh.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"

namespace rondo {
namespace {

constexpr Axis kAxes[] = {Axis::kData,   Axis::kContext,    Axis::kTensor,
                          Axis::kExpert, Axis::kExpertData, Axis::kDense};

std::string message_of(const MeshSizes& sizes, int64_t world) {
  try {
    Mesh(sizes, world);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Mesh, TensorIsFastest) {
  const Mesh mesh({2, 2, 2, 4}, 8);
  EXPECT_EQ(mesh.coordinate(Axis::kTensor, 5), 1);
  EXPECT_EQ(mesh.coordinate(Axis::kContext, 5), 0);
  EXPECT_EQ(mesh.coordinate(Axis::kData, 5), 1);
  EXPECT_EQ(mesh.coordinate(Axis::kExpert, 5), 1);
  EXPECT_EQ(mesh.coordinate(Axis::kExpertData, 5), 1);
  EXPECT_EQ(mesh.describe(), "data 2 x context 2 x tensor 2, expert 4");
  EXPECT_EQ(Mesh().describe(), "one rank");
}

// Each axis cuts the world into groups of its size whose members have all coordinates once.
TEST(Mesh, GroupsCoverTheWorld) {
  for (const MeshSizes& sizes : {MeshSizes{1, 1, 1, 1},
                                 {4, 2, 2, 2},
                                 {4, 2, 2, 4},
                                 {1, 3, 1, 3},
                                 {2, 1, 3, 6},
                                 {3, 2, 1, 2}}) {
    const int64_t world = sizes.data * sizes.context * sizes.tensor;
    const Mesh mesh(sizes, world);
    EXPECT_EQ(mesh.world(), world);
    for (const Axis axis : kAxes) {
      std::map<int, std::set<int>> groups;
      for (int rank = 0; rank < world; ++rank)
        EXPECT_TRUE(groups[mesh.color(axis, rank)].insert(mesh.coordinate(axis, rank)).second);
      EXPECT_EQ(static_cast<int64_t>(groups.size()), world / mesh.size(axis));
      for (const auto& [color, members] : groups) {
        EXPECT_EQ(static_cast<int>(members.size()), mesh.size(axis));
        EXPECT_EQ(*members.rbegin(), mesh.size(axis) - 1);
      }
    }
  }
}

TEST(Mesh, DerivesWhatIsLeftOut) {
  const Mesh mesh({0, 2, 0, 0}, 8);
  EXPECT_EQ(mesh.size(Axis::kData), 4);
  EXPECT_EQ(mesh.size(Axis::kTensor), 1);
  EXPECT_EQ(mesh.size(Axis::kExpert), 1);
  EXPECT_EQ(mesh.size(Axis::kExpertData), 8);
}

TEST(Mesh, RefusesWithWhatWouldFit) {
  EXPECT_EQ(message_of({3, 2, 1, 1}, 8),
            "parallel: data 3 x context 2 x tensor 1 = 6 ranks, but there are 8; data = 4 fits");
  EXPECT_EQ(message_of({0, 3, 1, 1}, 8),
            "parallel: context 3 x tensor 1 = 3 does not divide the 8 ranks; their product must be "
            "one of 1, 2, 4, 8");
  EXPECT_EQ(message_of({0, 1, 1, 3}, 8),
            "parallel: expert 3 does not divide the 8 ranks; it may be one of 1, 2, 4, 8");
}

}  // namespace
}  // namespace rondo

#include "kernels/ops/embedding.h"

#include "each_implementation.h"
#include "kernels/ops/embedding_cost.h"

namespace rondo::testing {
namespace {

struct Shape {
  int64_t tokens, vocabulary, cols, gap;
};
constexpr Shape kShapes[] = {{0, 3, 4, 0},    {1, 1, 1, 0},     {5, 3, 7, 0},    {130, 11, 31, 3},
                             {67, 97, 64, 0}, {40, 13, 601, 2}, {700, 2, 131, 1}};

std::string name(const Shape& s) {
  return std::to_string(s.tokens) + " of " + std::to_string(s.vocabulary) + "x" +
         std::to_string(s.cols);
}

// Ids that repeat, the first and the last among them.
std::vector<int32_t> some_ids(int64_t tokens, int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (int64_t t = 0; t < tokens; ++t)
    ids.push_back(static_cast<int32_t>(t == 0 ? vocabulary - 1 : (t * t + 3 * t) % vocabulary));
  return ids;
}

TEST(Embedding, Forward) {
  for (const Shape& s : kShapes)
    conform<EmbeddingArgs>(name(s), [&](Buffers& b) {
      EmbeddingArgs a;
      a.table = b.random({s.vocabulary, s.cols}, -1, 1, s.gap);
      a.ids = b.ints({s.tokens}, some_ids(s.tokens, s.vocabulary));
      a.y = b.output({s.tokens, s.cols}, 2 * s.gap);
      return a;
    });
}

EmbeddingBackwardArgs backward(Buffers& b, const Shape& s) {
  EmbeddingBackwardArgs a;
  a.ids = b.ints({s.tokens}, some_ids(s.tokens, s.vocabulary));
  a.dy = b.random({s.tokens, s.cols}, -1, 1, s.gap);
  a.d_table = b.random({s.vocabulary, s.cols}, -1, 1, 2 * s.gap);
  return a;
}

TEST(Embedding, Backward) {
  for (const Shape& s : kShapes)
    conform<EmbeddingBackwardArgs>(name(s), [&](Buffers& b) { return backward(b, s); });
}

// 1e17 + 1 is 1e17 in double too, so the order of addition shows in every implementation.
TEST(Embedding, RepeatedIdsAreAddedInOrder) {
  const auto sum_of = [](std::vector<double> dy, double want) {
    each_implementation<EmbeddingBackwardArgs>(
        [&](Buffers& b) {
          EmbeddingBackwardArgs a;
          a.ids = b.ints({3}, {1, 1, 1});
          a.dy = b.values({3, 1}, dy);
          a.d_table = b.values({2, 1}, {5, 0});
          return a;
        },
        [&](const EmbeddingBackwardArgs& a) {
          EXPECT_EQ(element(a.d_table, 0), 5) << "a row with no token";
          EXPECT_EQ(element(a.d_table, 1), want);
        });
  };
  sum_of({1e17, 1, -1e17}, 0);
  sum_of({1e17, -1e17, 1}, 1);
}

TEST(Embedding, GradientByFiniteDifferences) {
  Buffers b(DType::kF64);
  EmbeddingArgs f;
  f.table = b.random({4, 3});
  f.ids = b.ints({5}, {1, 3, 1, 0, 1});
  f.y = b.output({5, 3});
  EmbeddingBackwardArgs g;
  g.ids = f.ids;
  g.dy = b.random({5, 3});
  g.d_table = b.values({4, 3}, std::vector<double>(12, 0));
  reference(g);
  expect_gradient("embedding",
                  [&] {
                    reference(f);
                    return weighted_sum(f.y, g.dy);
                  },
                  {{f.table, g.d_table}});
}

TEST(Embedding, IdOutOfRange) {
  for (const int32_t id : {3, -1}) {
    for (const auto& implementation : implementations<EmbeddingArgs>()) {
      Buffers b(DType::kF32);
      EmbeddingArgs a;
      a.table = b.random({3, 2});
      a.ids = b.ints({1}, {id});
      a.y = b.output({1, 2});
      EXPECT_THROW(run_once(implementation, a, 1), InvariantError) << implementation.name;
    }
    for (const auto& implementation : implementations<EmbeddingBackwardArgs>()) {
      Buffers b(DType::kF32);
      EmbeddingBackwardArgs a = backward(b, {1, 3, 2, 0});
      a.ids.as<int32_t>()[0] = id;
      EXPECT_THROW(run_once(implementation, a, 1), InvariantError) << implementation.name;
    }
  }
}

TEST(Embedding, Cost) {
  EXPECT_EQ(embedding_cost(5, 8).bytes, 4 * 80 + 20);
  EXPECT_EQ(embedding_backward_cost(5, 2, 8).bytes, 4 * 8 * (5 + 4) + 20);
}

}  // namespace
}  // namespace rondo::testing

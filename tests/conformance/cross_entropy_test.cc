#include "kernels/ops/cross_entropy.h"

#include <cmath>

#include "each_implementation.h"
#include "kernels/ops/cross_entropy_cost.h"

namespace rondo::testing {
namespace {

struct Shape {
  int64_t rows, cols, gap;
};
constexpr Shape kShapes[] = {{0, 3, 0},  {1, 1, 0},    {3, 7, 0},    {5, 31, 3},
                             {9, 64, 0}, {13, 129, 1}, {2, 4099, 0}, {1, 50'003, 0}};

// Some label in each row, every third ignored.
std::vector<int32_t> some_labels(int64_t rows, int64_t cols) {
  std::vector<int32_t> labels;
  for (int64_t t = 0; t < rows; ++t)
    labels.push_back(t % 3 == 2 ? kIgnoreLabel : static_cast<int32_t>((7 * t + 5) % cols));
  return labels;
}

CrossEntropyArgs some(Buffers& b, const Shape& s, bool gradient, double reach) {
  CrossEntropyArgs a;
  a.logits = b.random({s.rows, s.cols}, -reach, reach, s.gap);
  a.labels = b.ints({s.rows}, some_labels(s.rows, s.cols));
  a.loss = b.output({s.rows});
  a.gradient = gradient;
  a.grad_scale = 0.37f;
  return a;
}

TEST(CrossEntropy, LossAndGradient) {
  for (const Shape& s : kShapes)
    for (const bool gradient : {false, true})
      for (const double reach : {1.0, 30.0})
        conform<CrossEntropyArgs>(std::to_string(s.rows) + "x" + std::to_string(s.cols),
                                  [&](Buffers& b) { return some(b, s, gradient, reach); });
}

TEST(CrossEntropy, HugeLogitsDoNotOverflow) {
  for (const bool gradient : {false, true})
    conform<CrossEntropyArgs>("1e4", [&](Buffers& b) {
      return some(b, {5, 67, 0}, gradient, 1e4);
    });
  each_implementation<CrossEntropyArgs>(
      [](Buffers& b) {
        CrossEntropyArgs a;
        a.logits = b.values({3, 3}, {1e4, -1e4, 0, 1e4, -1e4, 0, -1e4, -1e4, -1e4});
        a.labels = b.ints({3}, {0, 1, 2});
        a.loss = b.output({3});
        a.gradient = true;
        return a;
      },
      [](const CrossEntropyArgs& a) {
        expect_near(a.loss, {0, 2e4, std::log(3.0)}, 1e-6);
        expect_near(a.logits, {0, 0, 0, 1, -1, 0, 1 / 3.0, 1 / 3.0, -2 / 3.0}, 1e-6);
      });
}

// A logit of -inf is a class that is masked; NaN and +inf must show.
TEST(CrossEntropy, InfiniteAndNan) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const bool gradient : {false, true}) {
    const auto build = [&](Buffers& b) {
      CrossEntropyArgs a;
      a.logits = b.values({4, 4}, {-inf, 1, 1, -inf, 0, 0, nan, 0, 0, 0, inf, 0, nan, 1, 2, 3});
      a.labels = b.ints({4}, {1, 1, 1, 1});
      a.loss = b.output({4});
      for (int i = 0; i < 4; ++i) set_element(a.loss, i, 0);
      a.gradient = gradient;
      return a;
    };
    conform<CrossEntropyArgs>("not finite", build);
    each_implementation<CrossEntropyArgs>(build, [&](const CrossEntropyArgs& a) {
      EXPECT_NEAR(element(a.loss, 0), std::log(2.0), 1e-6);
      for (int i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(element(a.loss, i))) << "row " << i;
      if (!gradient) return;
      const std::vector<double> want = {0, -0.5, 0.5, 0};
      for (int i = 0; i < 4; ++i) EXPECT_NEAR(element(a.logits, i), want[i], 1e-6);
      EXPECT_TRUE(std::isnan(element(a.logits, 4)));
    });
  }
}

// Labels that are ignored: exactly 0, whatever the logits were.
TEST(CrossEntropy, IgnoredLabels) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const auto build = [&](Buffers& b) {
    CrossEntropyArgs a;
    a.logits = b.values({3, 5}, {nan, nan, nan, nan, nan, 1, 2, 3, 4, 5, inf, nan, 1, -inf, 2});
    a.labels = b.ints({3}, {kIgnoreLabel, 2, kIgnoreLabel});
    a.loss = b.output({3});
    a.gradient = true;
    return a;
  };
  conform<CrossEntropyArgs>("ignored", build);
  each_implementation<CrossEntropyArgs>(build, [](const CrossEntropyArgs& a) {
    for (const int row : {0, 2}) {
      EXPECT_EQ(element(a.loss, row), 0);
      EXPECT_FALSE(std::signbit(element(a.loss, row)));
      for (int i = 0; i < 5; ++i) EXPECT_EQ(element(a.logits, 5 * row + i), 0);
    }
    EXPECT_GT(element(a.loss, 1), 0);
  });
}

// No valid token anywhere: the mean divides by nothing, and 1 / 0 must not come through.
TEST(CrossEntropy, NoValidToken) {
  each_implementation<CrossEntropyArgs>(
      [](Buffers& b) {
        CrossEntropyArgs a;
        a.logits = b.random({4, 9});
        a.labels = b.ints({4}, std::vector<int32_t>(4, kIgnoreLabel));
        a.loss = b.output({4});
        a.gradient = true;
        a.grad_scale = std::numeric_limits<float>::infinity();
        return a;
      },
      [](const CrossEntropyArgs& a) {
        EXPECT_EQ(max_norm_error(a.loss, a.loss), 0);
        for (int i = 0; i < 4; ++i) EXPECT_EQ(element(a.loss, i), 0);
        for (int i = 0; i < 36; ++i) EXPECT_EQ(element(a.logits, i), 0);
      });
}

// Micro-batches: a token's loss and gradient have the same bits whatever rows stand around it.
TEST(CrossEntropy, RowsDoNotDependOnTheirCompany) {
  for (const auto& implementation : implementations<CrossEntropyArgs>()) {
    Buffers all(DType::kF32), one(DType::kF32);
    const CrossEntropyArgs whole = some(all, {7, 37, 0}, true, 5);
    const CrossEntropyArgs parts = some(one, {7, 37, 0}, true, 5);
    run_once(implementation, whole, 2);
    for (int64_t t = 0; t < 7; ++t) {
      CrossEntropyArgs row = parts;
      row.logits = parts.logits.slice(0, t, t + 1);
      row.labels = parts.labels.slice(0, t, t + 1);
      row.loss = parts.loss.slice(0, t, t + 1);
      run_once(implementation, row, 1);
    }
    EXPECT_EQ(detail::bits(whole.logits), detail::bits(parts.logits)) << implementation.name;
    EXPECT_EQ(detail::bits(whole.loss), detail::bits(parts.loss)) << implementation.name;
  }
}

TEST(CrossEntropy, GradientByFiniteDifferences) {
  Buffers b(DType::kF64);
  CrossEntropyArgs loss = some(b, {4, 7, 0}, false, 3);
  CrossEntropyArgs gradient = some(b, {4, 7, 0}, true, 3);
  for (int64_t i = 0; i < 28; ++i) set_element(gradient.logits, i, element(loss.logits, i));
  reference(gradient);
  expect_gradient("cross_entropy",
                  [&] {
                    reference(loss);
                    double sum = 0;
                    for (int64_t t = 0; t < 4; ++t) sum += element(loss.loss, t);
                    return sum * double{loss.grad_scale};
                  },
                  {{loss.logits, gradient.logits}});
}

TEST(CrossEntropy, LabelOutOfRange) {
  for (const int32_t label : {5, -1})
    for (const auto& implementation : implementations<CrossEntropyArgs>()) {
      Buffers b(DType::kF32);
      CrossEntropyArgs a = some(b, {1, 5, 0}, false, 1);
      a.labels.as<int32_t>()[0] = label;
      EXPECT_THROW(run_once(implementation, a, 1), InvariantError) << implementation.name;
    }
}

TEST(CrossEntropy, Cost) {
  EXPECT_EQ(cross_entropy_cost(3, 100, true).bytes, 4 * (2 * 300 + 3) + 12);
}

}  // namespace
}  // namespace rondo::testing

#include "kernels/ops/swiglu.h"

#include <cmath>

#include "each_implementation.h"
#include "kernels/ops/swiglu_cost.h"

namespace rondo::testing {
namespace {

struct Shape {
  int64_t rows, cols, gap;
};
constexpr Shape kShapes[] = {{0, 5, 0},   {1, 1, 0},    {3, 7, 0},   {5, 31, 3},
                             {33, 64, 0}, {17, 129, 1}, {41, 521, 2}};

std::string name(const Shape& s) {
  return std::to_string(s.rows) + "x" + std::to_string(s.cols);
}

// A slot for every row, in another order.
std::vector<int32_t> some_slots(int64_t rows) {
  std::vector<int32_t> slots;
  for (int64_t r = 0; r < rows; ++r) slots.push_back(static_cast<int32_t>(2 * (rows - 1 - r) + 1));
  return slots;
}

SwigluArgs forward(Buffers& b, const Shape& s, bool weights) {
  SwigluArgs a;
  a.x = b.random({s.rows, 2 * s.cols}, -4, 4, s.gap);
  a.y = b.output({s.rows, s.cols}, 2 * s.gap);
  if (weights) {
    a.weights = b.random({2 * s.rows}, 0.1, 1);
    a.row_slot = b.ints({s.rows}, some_slots(s.rows));
  }
  return a;
}

SwigluBackwardArgs backward(Buffers& b, const Shape& s, bool weights, bool y) {
  SwigluBackwardArgs a;
  a.x = b.random({s.rows, 2 * s.cols}, -4, 4, s.gap);
  a.dy = b.random({s.rows, s.cols}, -1, 1, s.gap);
  a.dx = b.output({s.rows, 2 * s.cols}, 2 * s.gap);
  if (y) a.y = b.output({s.rows, s.cols}, s.gap);
  if (weights) {
    a.weights = b.random({2 * s.rows}, 0.1, 1);
    a.row_slot = b.ints({s.rows}, some_slots(s.rows));
    a.d_row_weight = b.output({s.rows});
  }
  return a;
}

TEST(Swiglu, Forward) {
  for (const Shape& s : kShapes)
    for (const bool weights : {false, true})
      conform<SwigluArgs>(name(s), [&](Buffers& b) { return forward(b, s, weights); });
}

TEST(Swiglu, Backward) {
  for (const Shape& s : kShapes)
    for (const bool weights : {false, true})
      for (const bool y : {false, true})
        conform<SwigluBackwardArgs>(name(s),
                                    [&](Buffers& b) { return backward(b, s, weights, y); });
}

// What training does to save memory: the gradient takes the place of what it came from.
TEST(Swiglu, BackwardInPlace) {
  for (const Shape& s : kShapes)
    for (const bool weights : {false, true}) {
      const auto apart = [&](Buffers& b) { return backward(b, s, weights, true); };
      const auto in_place = [&](Buffers& b) {
        SwigluBackwardArgs a = backward(b, s, weights, false);
        a.dx = a.x;
        a.y = a.dy;
        return a;
      };
      conform<SwigluBackwardArgs>(name(s) + " in place", in_place);
      for (const auto& implementation : implementations<SwigluBackwardArgs>()) {
        Buffers b1(DType::kF32), b2(DType::kF32);
        const SwigluBackwardArgs one = apart(b1), two = in_place(b2);
        run_once(implementation, one, 2);
        run_once(implementation, two, 2);
        EXPECT_EQ(detail::bits(one.dx), detail::bits(two.dx)) << implementation.name;
        EXPECT_EQ(detail::bits(one.y), detail::bits(two.y)) << implementation.name;
      }
    }
}

// Rows past the last group's end are neither read nor written: their inputs are NaN here, their
// outputs hold values that must stay.
TEST(Swiglu, RowsPastTheEnd) {
  for (const int32_t used : {0, 1, 20, 33}) {
    const Shape s{33, 13, 1};
    const auto poison = [&](const View& v) {
      for (int64_t r = used; r < v.rows(); ++r) poison_row(v, r);
    };
    conform<SwigluArgs>("rows past the end", [&](Buffers& b) {
      SwigluArgs a = forward(b, s, true);
      a.y = b.random({s.rows, s.cols});
      a.offsets = b.ints({3}, {0, used / 2, used});
      poison(a.x);
      for (int64_t r = used; r < s.rows; ++r) a.row_slot.as<int32_t>()[r] = 1 << 30;
      return a;
    });
    conform<SwigluBackwardArgs>("rows past the end", [&](Buffers& b) {
      SwigluBackwardArgs a = backward(b, s, true, true);
      a.dx = b.random({s.rows, 2 * s.cols});
      a.y = b.random({s.rows, s.cols});
      a.d_row_weight = b.random({s.rows});
      a.offsets = b.ints({3}, {0, used / 2, used});
      poison(a.x);
      poison(a.dy);
      for (int64_t r = used; r < s.rows; ++r) a.row_slot.as<int32_t>()[r] = 1 << 30;
      return a;
    });
  }
}

TEST(Swiglu, KnownValues) {
  const double silu1 = 1 / (1 + std::exp(-1.0));
  each_implementation<SwigluArgs>(
      [](Buffers& b) {
        SwigluArgs a;
        a.x = b.values({2, 6}, {0, 1, -1, 3, 2, 2, 1e4, -1e4, -200, 1, 1, 1});
        a.y = b.output({2, 3});
        return a;
      },
      [&](const SwigluArgs& a) {
        expect_near(a.y, {0, 2 * silu1, -2 * (1 - silu1), 1e4, 0, 0}, 1e-6);
      });
  // A gate far out neither overflows nor makes NaN in the gradient.
  each_implementation<SwigluBackwardArgs>(
      [](Buffers& b) {
        SwigluBackwardArgs a;
        a.x = b.values({1, 8}, {1e4, -1e4, 200, -200, 3, 3, 3, 3});
        a.dy = b.values({1, 4}, {1, 1, 1, 1});
        a.dx = b.output({1, 8});
        return a;
      },
      [](const SwigluBackwardArgs& a) {
        expect_near(a.dx, {3, 0, 3, 0, 1e4, 0, 200, 0}, 1e-3);
      });
}

// A broken model must not look well.
TEST(Swiglu, NanStaysNan) {
  each_implementation<SwigluArgs>(
      [](Buffers& b) {
        SwigluArgs a;
        a.x = b.values({1, 4}, {std::nan(""), 1, 1, std::nan("")});
        a.y = b.output({1, 2});
        set_element(a.y, 0, 0);
        set_element(a.y, 1, 0);
        return a;
      },
      [](const SwigluArgs& a) {
        EXPECT_TRUE(std::isnan(element(a.y, 0)));
        EXPECT_TRUE(std::isnan(element(a.y, 1)));
      });
}

TEST(Swiglu, GradientByFiniteDifferences) {
  Buffers b(DType::kF64);
  SwigluArgs f;
  f.x = b.random({3, 10}, -3, 3);
  f.y = b.output({3, 5});
  f.weights = b.random({3}, 0.1, 1);  // by slot
  f.row_slot = b.ints({3}, {0, 1, 2});
  SwigluBackwardArgs g;
  g.x = f.x;
  g.dy = b.random({3, 5});
  g.dx = b.output({3, 10});
  g.y = b.output({3, 5});
  g.weights = f.weights;
  g.row_slot = f.row_slot;
  g.d_row_weight = b.output({3});
  reference(f);
  reference(g);
  EXPECT_EQ(detail::bits(f.y), detail::bits(g.y)) << "the forward result again";
  expect_gradient("swiglu",
                  [&] {
                    reference(f);
                    return weighted_sum(f.y, g.dy);
                  },
                  {{f.x, g.dx}, {f.weights, g.d_row_weight}});
}

TEST(Swiglu, Cost) {
  EXPECT_EQ(swiglu_cost(10, 8).bytes, 4 * 3 * 80);
  EXPECT_EQ(swiglu_backward_cost(10, 8, false, true).bytes, 4 * 6 * 80);
}

}  // namespace
}  // namespace rondo::testing

#include "kernels/ops/rms_norm.h"

#include <cmath>

#include "each_implementation.h"

namespace rondo::testing {
namespace {

struct Shape {
  int64_t rows, cols, gap;
};
constexpr Shape kShapes[] = {{1, 1, 0}, {3, 7, 0}, {5, 31, 3}, {70, 64, 0}, {131, 129, 1}};

TEST(RmsNorm, Forward) {
  for (const Shape& s : kShapes)
    for (const bool residual : {false, true})
      conform<RmsNormArgs>(std::to_string(s.rows) + "x" + std::to_string(s.cols), [&](Buffers& b) {
        RmsNormArgs a;
        a.x = b.random({s.rows, s.cols}, -2, 2, s.gap);
        if (residual) {
          a.residual = b.random({s.rows, s.cols});
          a.sum = b.output({s.rows, s.cols}, s.gap);
        }
        a.w = b.random({s.cols}, 0.5, 1.5);
        a.y = b.output({s.rows, s.cols}, 2 * s.gap);
        a.inv_rms = b.output({s.rows});
        return a;
      });
}

// Rows of mean square 1 and 12.5; eps counts.
TEST(RmsNorm, ByHand) {
  each_implementation<RmsNormArgs>(
      [](Buffers& b) {
        RmsNormArgs a;
        a.x = b.values({2, 2}, {1, -1, 3, 4});
        a.w = b.values({2}, {1, 2});
        a.y = b.output({2, 2});
        a.inv_rms = b.output({2});
        a.eps = 3;
        return a;
      },
      [](const RmsNormArgs& a) {
        const double second = 1 / std::sqrt(15.5);
        expect_near(a.inv_rms, {0.5, second}, 1e-7);
        expect_near(a.y, {0.5, -1, 3 * second, 8 * second}, 1e-6);
        EXPECT_EQ(element(a.y, 0), 0.5);
      });
}

RmsNormBackwardArgs backward(Buffers& b, const Shape& s, bool accumulate) {
  RmsNormBackwardArgs a;
  a.x = b.random({s.rows, s.cols}, -2, 2, s.gap);
  a.w = b.random({s.cols}, 0.5, 1.5);
  a.inv_rms = b.random({s.rows}, 0.8, 1.2);
  a.dy = b.random({s.rows, s.cols}, -1, 1, s.gap);
  a.dx = accumulate ? b.random({s.rows, s.cols}) : b.output({s.rows, s.cols});
  a.dw = b.random({s.cols});
  a.accumulate_dx = accumulate;
  return a;
}

TEST(RmsNorm, Backward) {
  for (const Shape& s : kShapes)
    for (const bool accumulate : {false, true})
      conform<RmsNormBackwardArgs>(std::to_string(s.rows) + "x" + std::to_string(s.cols),
                                   [&](Buffers& b) { return backward(b, s, accumulate); });
}

TEST(RmsNorm, GradientByFiniteDifferences) {
  Buffers b(DType::kF64);
  RmsNormArgs f;
  f.x = b.random({3, 7});
  f.w = b.random({7});
  f.y = b.output({3, 7});
  f.inv_rms = b.output({3});
  RmsNormBackwardArgs g;
  g.x = f.x;
  g.w = f.w;
  g.inv_rms = f.inv_rms;
  g.dy = b.random({3, 7});
  g.dx = b.output({3, 7});
  g.dw = b.values({7}, std::vector<double>(7, 0));
  reference(f);
  reference(g);
  expect_gradient("rms_norm",
                  [&] {
                    reference(f);
                    return weighted_sum(f.y, g.dy);
                  },
                  {{f.x, g.dx}, {f.w, g.dw}});
}

}  // namespace
}  // namespace rondo::testing

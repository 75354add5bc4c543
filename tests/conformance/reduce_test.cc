#include "kernels/ops/reduce.h"

#include <cmath>

#include "each_implementation.h"
#include "kernels/ops/reduce_cost.h"

namespace rondo::testing {
namespace {

using Kind = ReduceArgs::Kind;
constexpr Kind kKinds[] = {Kind::kSum, Kind::kSumSquares, Kind::kNonfinite};

TEST(Reduce, EveryKind) {
  for (const int64_t n : {0, 1, 2, 7, 31, 64, 1009, 40'009})
    for (const Kind kind : kKinds)
      conform<ReduceArgs>(std::to_string(n), [&](Buffers& b) {
        ReduceArgs a;
        a.x = b.random({n}, -1, 3);
        a.y = b.f64({1}, {0.5});
        a.kind = kind;
        a.scale = 0.25;
        return a;
      });
}

TEST(Reduce, AnyRank) {
  conform<ReduceArgs>("3 x 5 x 7", [&](Buffers& b) {
    ReduceArgs a;
    a.x = b.random({3, 5, 7}, -1, 3);
    a.y = b.f64({1}, {0});
    return a;
  });
}

// One broken element anywhere is found, in the last place as well, and counted once.
TEST(Reduce, CountsWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const int64_t n : {1, 19, 1009})
    for (const double bad : {inf, -inf, std::nan("")})
      for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
        const auto build = [&](Buffers& b) {
          ReduceArgs a;
          a.x = b.random({n});
          set_element(a.x, at, bad);
          a.y = b.f64({1}, {3});
          a.kind = Kind::kNonfinite;
          return a;
        };
        each_implementation<ReduceArgs>(build,
                                        [](const ReduceArgs& a) { EXPECT_EQ(element(a.y, 0), 4); });
      }
  // In each implementation's every instruction set.
  conform<ReduceArgs>("not finite", [&](Buffers& b) {
    ReduceArgs a;
    a.x = b.values({9}, {inf, 1, -inf, 2, std::nan(""), 3e38, -3e38, 0, inf});
    a.y = b.f64({1}, {0});
    a.kind = Kind::kNonfinite;
    return a;
  });
}

TEST(Reduce, NanAndInfinityReachTheSum) {
  for (const Kind kind : {Kind::kSum, Kind::kSumSquares})
    for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")})
      conform<ReduceArgs>("not finite", [&](Buffers& b) {
        ReduceArgs a;
        a.x = b.random({21});
        set_element(a.x, 20, bad);
        a.y = b.f64({1}, {0});
        a.kind = kind;
        return a;
      });
}

// A million small terms beside a large one lose nothing, and squares do not overflow.
TEST(Reduce, AddsInDouble) {
  each_implementation<ReduceArgs>(
      [](Buffers& b) {
        std::vector<double> x(1'000'001, 0x1p-20);
        x[0] = 0x1p20;
        ReduceArgs a;
        a.x = b.values({1'000'001}, x);
        a.y = b.f64({1}, {0});
        return a;
      },
      [](const ReduceArgs& a) { EXPECT_EQ(element(a.y, 0), 0x1p20 + 1'000'000 * 0x1p-20); });
  each_implementation<ReduceArgs>(
      [](Buffers& b) {
        ReduceArgs a;
        a.x = b.values({2}, {0x1p100, 0x1p100});
        a.y = b.f64({1}, {0});
        a.kind = Kind::kSumSquares;
        return a;
      },
      [](const ReduceArgs& a) { EXPECT_EQ(element(a.y, 0), 0x1p201); });
}

// The norm of every parameter once, added tensor by tensor.
TEST(Reduce, AddsToWhatIsThere) {
  for (const auto& implementation : implementations<ReduceArgs>()) {
    Buffers b(DType::kF32);
    const View y = b.f64({1}, {0});
    for (const double v : {2, 4, 6, 8}) {
      ReduceArgs a;
      a.x = b.values({1}, {v});
      a.y = y;
      a.kind = Kind::kSumSquares;
      run_once(implementation, a, 1);
    }
    EXPECT_NEAR(std::sqrt(element(y, 0)), 10.954452, 1e-6) << implementation.name;
  }
}

TEST(Reduce, Cost) {
  EXPECT_EQ(reduce_cost(100).bytes, 400);
}

}  // namespace
}  // namespace rondo::testing

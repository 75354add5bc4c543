#include "kernels/ops/elementwise.h"

#include <cmath>
#include <set>

#include "each_implementation.h"
#include "kernels/ops/elementwise_cost.h"
#include "tensor/place.h"

namespace rondo::testing {
namespace {

struct Shape {
  int64_t rows, cols, gap;
};
constexpr Shape kShapes[] = {{0, 3, 0},  {3, 0, 0},   {1, 1, 0},     {3, 7, 0},
                             {5, 31, 3}, {70, 64, 0}, {131, 129, 1}, {3, 20'011, 5}};

std::string name(const Shape& s) {
  return std::to_string(s.rows) + "x" + std::to_string(s.cols);
}

TEST(Fill, Floats) {
  for (const Shape& s : kShapes)
    conform<FillArgs>(name(s), [&](Buffers& b) {
      return FillArgs{b.output({s.rows, s.cols}, s.gap), -2.75f};
    });
  conform<FillArgs>("rank 1", [&](Buffers& b) { return FillArgs{b.output({1031}), 0}; });
  conform<FillArgs>("rank 3", [&](Buffers& b) { return FillArgs{b.output({2, 3, 5}, 4), 1.5f}; });
}

template <class T>
void fill_whole(float value, T want) {
  for (const int64_t n : {0, 1, 7, 33, 100'003})
    each_implementation<FillArgs>(
        [&](Buffers& b) {
          return FillArgs{b.int_output(DTypeOf<T>::value, {n}), value};
        },
        [&](const FillArgs& a) {
          int64_t wrong = 0;
          for (int64_t i = 0; i < n; ++i) wrong += a.y.as<T>()[i] != want;
          EXPECT_EQ(wrong, 0) << n << " of " << name_of(a.y.dtype);
        });
}

TEST(Fill, EveryDType) {
  fill_whole<int32_t>(-3.9f, -3);
  fill_whole<int64_t>(0x1p40f, int64_t{1} << 40);
  fill_whole<uint8_t>(200.5f, 200);
  fill_whole<double>(0.1f, double{0.1f});
  fill_whole<float>(0.1f, 0.1f);
  Buffers b(DType::kF32);
  EXPECT_THROW((FillArgs{b.int_output(DType::kBF16, {2}), 1}.check()), InvariantError);
}

// A buffer of NaN, as memory out of an arena may be, becomes zeros.
TEST(Fill, InEveryInstructionSet) {
  conform<FillArgs>("i32", [](Buffers& b) {
    return FillArgs{b.int_output(DType::kI32, {1031}), -7};
  });
  conform<FillArgs>("i64", [](Buffers& b) {
    return FillArgs{b.int_output(DType::kI64, {1031}), -7};
  });
}

TEST(Axpby, OddShapes) {
  for (const Shape& s : kShapes)
    for (const auto& [alpha, beta] :
         std::vector<std::pair<float, float>>{{0.7f, -1.3f}, {1, 1}, {-2, 0}})
      conform<AxpbyArgs>(name(s), [&, alpha = alpha, beta = beta](Buffers& b) {
        AxpbyArgs a;
        a.x = b.random({s.rows, s.cols}, -1, 1, s.gap);
        // Without beta y is not read: it is NaN before.
        a.y = beta == 0 ? b.output({s.rows, s.cols}, 2 * s.gap)
                        : b.random({s.rows, s.cols}, -1, 1, 2 * s.gap);
        a.alpha = alpha;
        a.beta = beta;
        return a;
      });
}

TEST(Axpby, Ranks) {
  conform<AxpbyArgs>("rank 1", [&](Buffers& b) {
    return AxpbyArgs{b.random({40'013}), b.random({40'013}), 2, 3};
  });
  for (const int64_t gap : {0, 3})
    conform<AxpbyArgs>("rank 3", [&](Buffers& b) {
      return AxpbyArgs{b.random({3, 5, 7}, -1, 1, gap), b.random({3, 5, 7}), 2, 3};
    });
  // A slice of the middle dimension: the outer stride is no multiple of what is in use.
  conform<AxpbyArgs>("middle slice", [&](Buffers& b) {
    return AxpbyArgs{b.random({3, 5, 7}).slice(1, 1, 4), b.random({3, 3, 7}), 2, 3};
  });
}

// Adding a gradient is one rounding: the same bits as x + y.
TEST(Axpby, OneAndOneIsASum) {
  for (const auto& implementation : implementations<AxpbyArgs>()) {
    Buffers b(DType::kF32);
    const AxpbyArgs a{b.random({1009}), b.random({1009}), 1, 1};
    std::vector<float> want;
    for (int64_t i = 0; i < 1009; ++i) want.push_back(a.x.as<float>()[i] + a.y.as<float>()[i]);
    run_once(implementation, a, 2);
    for (int64_t i = 0; i < 1009; ++i)
      ASSERT_EQ(a.y.as<float>()[i], want[i]) << implementation.name << ", element " << i;
  }
}

DropoutArgs dropout(Buffers& b, const Shape& s, float p, bool in_place = false) {
  DropoutArgs a;
  a.x = b.random({s.rows, s.cols}, 0.5, 1, s.gap);
  a.y = in_place ? a.x : b.output({s.rows, s.cols}, 2 * s.gap);
  a.places = b.places({static_cast<int>(s.rows)});
  a.p = p;
  a.seed = dropout_seed(7, 3, 1, 2);
  return a;
}

TEST(Dropout, OddShapes) {
  for (const Shape& s : kShapes)
    for (const float p : {0.0f, 0.1f, 0.875f})
      for (const bool in_place : {false, true})
        conform<DropoutArgs>(name(s), [&](Buffers& b) { return dropout(b, s, p, in_place); });
}

// Straight from the definition, and again for the other half of the counter and of the seed.
TEST(Dropout, MaskIsPhilox) {
  for (const float p : {0.3f, 0x1p-24f, 1 - 0x1p-24f})
    each_implementation<DropoutArgs>(
        [&](Buffers& b) {
          DropoutArgs a = dropout(b, {3, 531, 0}, p);
          a.places.as<int32_t>()[4] = 1 << 30;
          a.places.as<int32_t>()[9] = 1 << 30;
          return a;
        },
        [&](const DropoutArgs& a) {
          for (int64_t t = 0; t < 3; ++t)
            for (int64_t f = 0; f < 531; ++f) {
              const auto* place = a.places.as<int32_t>() + 4 * t;
              const auto words = philox(
                  {a.seed, RandomUse::kDropout},
                  static_cast<uint64_t>(place[0]) << 32 | static_cast<uint64_t>(place[1]), f / 4);
              const bool kept = uniform01(words[f % 4]) >= p;
              const double x = element(a.x, t * 531 + f), y = element(a.y, t * 531 + f);
              if (kept)
                ASSERT_NEAR(y, x / (1 - double{p}), 1e-6 * y) << t << ", " << f;
              else
                ASSERT_EQ(y, 0) << t << ", " << f;
            }
        });
}

// The mask belongs to the token: rows in another order, or on another rank, keep theirs.
TEST(Dropout, MaskFollowsTheToken) {
  const int64_t n = 6, cols = 53;
  for (const auto& implementation : implementations<DropoutArgs>()) {
    Buffers b1(DType::kF32), b2(DType::kF32);
    const DropoutArgs a = dropout(b1, {n, cols, 0}, 0.5f), turned = dropout(b2, {n, cols, 3}, 0.5f);
    for (int64_t t = 0; t < n; ++t)
      for (int64_t i = 0; i < cols; ++i) {
        set_element(turned.x, (n - 1 - t) * cols + i, element(a.x, t * cols + i));
        if (i < 4)
          turned.places.as<int32_t>()[4 * (n - 1 - t) + i] = a.places.as<int32_t>()[4 * t + i];
      }
    run_once(implementation, a, 1);
    run_once(implementation, turned, 3);
    for (int64_t t = 0; t < n; ++t)
      for (int64_t i = 0; i < cols; ++i)
        ASSERT_EQ(element(a.y, t * cols + i), element(turned.y, (n - 1 - t) * cols + i))
            << implementation.name;
  }
}

TEST(Dropout, KeepsAboutOneMinusP) {
  each_implementation<DropoutArgs>(
      [](Buffers& b) {
        return dropout(b, {64, 1024, 0}, 0.1f);
      },
      [](const DropoutArgs& a) {
        double kept = 0, in = 0, out = 0;
        for (int64_t i = 0; i < 65'536; ++i) {
          kept += element(a.y, i) != 0;
          in += element(a.x, i);
          out += element(a.y, i);
        }
        // Five standard deviations: 5 sqrt(0.9 * 0.1 / 65536).
        EXPECT_NEAR(kept / 65'536, 0.9, 0.0059);
        EXPECT_NEAR(out / in, 1, 0.008);
      });
}

// The gradient is the same call on dy: linear in x with a fixed mask.
TEST(Dropout, GradientByFiniteDifferences) {
  Buffers b(DType::kF64);
  DropoutArgs f = dropout(b, {3, 9, 0}, 0.4f);
  DropoutArgs g = f;
  g.x = b.random({3, 9});
  g.y = b.output({3, 9});
  reference(g);
  expect_gradient("dropout",
                  [&] {
                    reference(f);
                    return weighted_sum(f.y, g.x);
                  },
                  {{f.x, g.y}});
}

TEST(Dropout, SeedsDiffer) {
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 3; ++seed)
    for (int64_t step = 0; step < 3; ++step)
      for (int64_t layer = 0; layer < 3; ++layer)
        for (int64_t site = 0; site < 3; ++site)
          seeds.insert(dropout_seed(seed, step, layer, site));
  EXPECT_EQ(seeds.size(), 81u);
}

TEST(Elementwise, Cost) {
  EXPECT_EQ(fill_cost(10, 8).bytes, 80);
  EXPECT_EQ(axpby_cost(10, false).bytes, 80);
  EXPECT_EQ(dropout_cost(2, 10).bytes, 160 + 32);
}

}  // namespace
}  // namespace rondo::testing

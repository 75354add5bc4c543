#include "kernels/ops/route.h"

#include <cmath>

#include "each_implementation.h"

namespace rondo::testing {
namespace {

RoutePlanArgs plan(Buffers& b, const View& experts, int64_t n) {
  const int64_t slots = experts.elements();
  RoutePlanArgs a;
  a.experts = experts;
  a.offsets = b.int_output(DType::kI32, {n + 1});
  a.counts = b.int_output(DType::kI64, {n});
  for (int64_t e = 0; e < n; ++e) a.counts.as<int64_t>()[e] = (int64_t{1} << 40) + e;
  a.row_token = b.int_output(DType::kI32, {slots});
  a.row_slot = b.int_output(DType::kI32, {slots});
  a.slot_row = b.int_output(DType::kI32, {experts.rows(), experts.cols()});
  return a;
}

struct Shape {
  std::vector<int> lengths;
  int64_t experts, k;
};
const Shape kShapes[] = {{{1}, 1, 1},   {{}, 5, 2},          {{-4}, 3, 2},    {{3, -2, 4}, 7, 3},
                         {{257}, 2, 2}, {{1021, -7}, 33, 5}, {{1100}, 300, 1}};

TEST(RoutePlan, SortsSlots) {
  for (const Shape& s : kShapes)
    conform<RoutePlanArgs>(std::to_string(s.experts) + " experts", [&](Buffers& b) {
      const View places = b.places(s.lengths);
      return plan(b, b.ints({places.rows(), s.k}, some_experts(places, s.experts, s.k)), s.experts);
    });
}

TEST(RoutePlan, IsThisOne) {
  each_implementation<RoutePlanArgs>(
      [&](Buffers& b) {
        return plan(b, b.ints({4, 2}, {2, 0, -1, -1, 0, 3, 2, 0}), 4);
      },
      [&](const RoutePlanArgs& a) {
        expect_near(a.offsets, {0, 3, 3, 5, 6}, 0);
        expect_near(a.row_slot, {1, 4, 7, 0, 6, 5, 0, 0}, 0);
        expect_near(a.row_token, {0, 2, 3, 0, 3, 2, 0, 0}, 0);
        expect_near(a.slot_row, {3, 0, -1, -1, 1, 5, 4, 2}, 0);
        const int64_t added[] = {3, 0, 2, 1};
        for (int64_t e = 0; e < 4; ++e)
          EXPECT_EQ(a.counts.as<int64_t>()[e], (int64_t{1} << 40) + e + added[e]);
      });
}

TEST(RoutePlan, RefusesAnExpertThatIsNotThere) {
  for (const Implementation<RoutePlanArgs>& implementation : implementations<RoutePlanArgs>()) {
    Buffers b(DType::kF32);
    const RoutePlanArgs a = plan(b, b.ints({2, 1}, {0, 4}), 4);
    EXPECT_THROW(run_once(implementation, a, 1), InvariantError) << implementation.name;
  }
}

CombineArgs combine(Buffers& b, const Shape& s, int64_t width, int addend) {
  const View places = b.places(s.lengths);
  const int64_t tokens = places.rows();
  const RoutePlanArgs p =
      plan(b, b.ints({tokens, s.k}, some_experts(places, s.experts, s.k)), s.experts);
  reference(p);
  const int64_t rows = p.offsets.as<int32_t>()[s.experts];
  CombineArgs a;
  a.x = b.random({rows + 2, width}, -1, 1, width % 4);
  // Rows past the last one take no part.
  poison_row(a.x, rows);
  poison_row(a.x, rows + 1);
  a.slot_row = p.slot_row;
  if (addend) a.addend = b.random({tokens, width}, -1, 1, 1);
  a.y = addend == 2 ? a.addend : b.output({tokens, width}, 3);
  return a;
}

TEST(Combine, AddsCopies) {
  for (const Shape& s : kShapes)
    for (const int64_t width : {1, 17, 96})
      for (const int addend : {0, 1, 2}) {
        if (s.lengths.size() == 1 && s.lengths[0] > 1000 && width > 17) continue;
        conform<CombineArgs>(std::to_string(width) + " wide, addend " + std::to_string(addend),
                             [&](Buffers& b) { return combine(b, s, width, addend); });
      }
}

// Identity experts and weights that are powers of two: bit for bit what went in, also -0.
TEST(Combine, UndoesDispatch) {
  constexpr int64_t kTokens = 37, kWidth = 29, kCopies = 3;
  constexpr float kWeights[kCopies] = {0.25f, 0.5f, 0.25f};
  View x;
  each_implementation<CombineArgs>(
      [&](Buffers& b) {
        const Shape s{{kTokens}, 5, kCopies};
        CombineArgs a = combine(b, s, kWidth, 0);
        x = b.random({kTokens, kWidth}, -100, 100);
        set_element(x, 5, -0.0);
        for (int64_t t = 0; t < kTokens; ++t)
          for (int64_t j = 0; j < kCopies; ++j) {
            const int64_t r = a.slot_row.as<int32_t>()[t * kCopies + j];
            for (int64_t i = 0; i < kWidth; ++i)
              set_element(a.x, r * kWidth + i, kWeights[j] * element(x, t * kWidth + i));
          }
        return a;
      },
      [&](const CombineArgs& a) { EXPECT_EQ(detail::bits(a.y), detail::bits(x)); });
}

// (2^24 + 1) + 1 = 2^24 in fp32, 2^24 + (1 + 1) is not; the addend comes after all of them.
TEST(Combine, KeepsTheOrderOfK) {
  for (const auto& [values, want] : {std::pair{std::vector<double>{0x1p24, 1, 1}, 0x1p24},
                                     std::pair{std::vector<double>{1, 1, 0x1p24}, 0x1p24 + 2}})
    for (const bool addend : {false, true}) {
      Buffers b(DType::kF32);
      CombineArgs a;
      // Rows stand the other way round than slots.
      a.x = b.values({3, 1}, {values[2], values[1], values[0]});
      a.slot_row = b.ints({1, 3}, {2, 1, 0});
      if (addend) a.addend = b.values({1, 1}, {-0x1p24});
      a.y = b.output({1, 1});
      for (const Implementation<CombineArgs>& implementation : implementations<CombineArgs>()) {
        if (std::string(implementation.name) == "reference") continue;  // adds in double
        run_once(implementation, a, 1);
        EXPECT_EQ(element(a.y, 0), addend ? want - 0x1p24 : want) << implementation.name;
      }
    }
}

TEST(Combine, RefusesARowThatIsNotThere) {
  for (const Implementation<CombineArgs>& implementation : implementations<CombineArgs>()) {
    Buffers b(DType::kF32);
    CombineArgs a;
    a.x = b.random({3, 2});
    a.slot_row = b.ints({2, 1}, {0, 3});
    a.y = b.output({2, 2});
    EXPECT_THROW(run_once(implementation, a, 1), InvariantError) << implementation.name;
  }
}

}  // namespace
}  // namespace rondo::testing

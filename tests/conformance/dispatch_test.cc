#include "kernels/ops/dispatch.h"

#include "each_implementation.h"

namespace rondo::testing {
namespace {

struct Shape {
  std::vector<int> lengths;
  int64_t experts, k;
  std::vector<int32_t> bounds;
};
const Shape kShapes[] = {{{1}, 1, 1, {0, 1}},
                         {{}, 4, 2, {0, 2, 4}},
                         {{-5}, 4, 2, {0, 2, 4}},
                         {{3, -2, 4}, 7, 3, {0, 3, 5, 7}},
                         {{130, -1, 70}, 12, 4, {0, 5, 5, 12}},  // a rank without experts
                         {{257}, 33, 5, {0, 9, 17, 25, 33}},
                         {{64}, 8, 8, {0, 8}}};

View experts_of(Buffers& b, const Shape& s) {
  const View places = b.places(s.lengths);
  return b.ints({places.rows(), s.k}, some_experts(places, s.experts, s.k));
}
View bounds_of(Buffers& b, const Shape& s) {
  return b.ints({static_cast<int64_t>(s.bounds.size())}, s.bounds);
}
int64_t ranks_of(const Shape& s) {
  return static_cast<int64_t>(s.bounds.size()) - 1;
}

int32_t int_at(const View& v, int64_t i) {
  return static_cast<int32_t>(element(v, i));
}

// Rows and copies over all ranks.
std::pair<int64_t, int64_t> totals(const View& experts, const Shape& s) {
  int64_t rows = 0, copies = 0;
  for (int64_t t = 0; t < experts.rows(); ++t)
    for (int64_t r = 0; r < ranks_of(s); ++r) {
      int64_t here = 0;
      for (int64_t j = 0; j < s.k; ++j) {
        const int32_t e = int_at(experts, t * s.k + j);
        here += e >= s.bounds[static_cast<size_t>(r)] && e < s.bounds[static_cast<size_t>(r) + 1];
      }
      rows += here > 0;
      copies += here;
    }
  return {rows, copies};
}

DispatchPackArgs pack(Buffers& b, const Shape& s, int64_t h, int64_t m) {
  DispatchPackArgs a;
  a.experts = experts_of(b, s);
  const int64_t tokens = a.experts.rows();
  a.x = b.random({tokens, h}, -1, 1, 3);
  if (m > 0) a.more = b.random({tokens, m}, -1, 1, 1);
  a.weights = b.random({tokens, s.k}, 0, 1);
  a.bounds = bounds_of(b, s);
  a.rows = b.output({totals(a.experts, s).first, h + m + 2 * s.k}, 2);
  a.slot_copy = b.int_output(DType::kI32, {tokens, s.k});
  a.first_copy = 17;
  return a;
}

TEST(Dispatch, Count) {
  for (const Shape& s : kShapes)
    for (const int64_t tile : {1, 7, 64})
      conform<DispatchCountArgs>(std::to_string(s.experts) + " experts", [&](Buffers& b) {
        DispatchCountArgs a;
        a.experts = experts_of(b, s);
        a.bounds = bounds_of(b, s);
        a.tile = tile;
        a.counts =
            b.int_output(DType::kI32, {(a.experts.rows() + tile - 1) / tile, ranks_of(s), 2});
        return a;
      });
}

TEST(Dispatch, Pack) {
  for (const Shape& s : kShapes)
    for (const auto& [h, m] : {std::pair<int64_t, int64_t>{1, 0}, {33, 0}, {16, 31}})
      conform<DispatchPackArgs>(std::to_string(s.experts) + " experts",
                                [&](Buffers& b) { return pack(b, s, h, m); });
}

TEST(Dispatch, Unpack) {
  for (const Shape& s : kShapes)
    conform<DispatchUnpackArgs>(std::to_string(s.experts) + " experts", [&](Buffers& b) {
      const DispatchPackArgs p = pack(b, s, 5, 0);
      reference(p);
      DispatchUnpackArgs a;
      a.rows = b.random({p.rows.rows(), p.rows.cols()}, 0, 8);
      for (int64_t i = 0; i < p.rows.elements(); ++i) set_element(a.rows, i, element(p.rows, i));
      a.experts = b.int_output(DType::kI32, {p.rows.rows(), s.k});
      a.weights = b.output({p.rows.rows(), s.k});
      return a;
    });
}

TEST(Dispatch, Return) {
  for (const Shape& s : kShapes)
    for (const bool extra : {false, true})
      conform<ReturnPackArgs>(std::to_string(s.experts) + " experts", [&](Buffers& b) {
        std::vector<int32_t> rows;
        const View experts = experts_of(b, s);
        const int64_t slots = experts.elements();
        int64_t copies = 0;
        for (int64_t i = 0; i < slots; ++i) {
          const bool here = int_at(experts, i) >= 0 && i % 3 != 1;
          rows.push_back(here ? static_cast<int32_t>(slots - 1 - i) : -1);
          copies += here;
        }
        ReturnPackArgs a;
        a.x = b.random({slots, 19}, -1, 1, 1);
        if (extra) a.extra = b.random({slots});
        a.slot_row = b.ints({experts.rows(), s.k}, rows);
        a.copies = b.output({copies, 19 + (extra ? 1 : 0)}, 2);
        return a;
      });
}

// Two tokens, experts 0 and 1 on rank 0, 2 and 3 on rank 1.
TEST(Dispatch, ATokenTravelsOnceToARank) {
  each_implementation<DispatchPackArgs>(
      [](Buffers& b) {
        DispatchPackArgs a;
        a.x = b.values({2, 1}, {10, 20});
        a.experts = b.ints({2, 2}, {1, 0, 3, 1});
        a.weights = b.values({2, 2}, {0.5, 0.25, 2, 4});
        a.bounds = b.ints({3}, {0, 2, 4});
        a.rows = b.output({3, 5});
        a.slot_copy = b.int_output(DType::kI32, {2, 2});
        return a;
      },
      [](const DispatchPackArgs& a) {
        expect_near(a.rows, {10, 1, 0, 0.5, 0.25, 20, -1, 1, 2, 4, 20, 1, -1, 2, 4}, 0);
        expect_near(a.slot_copy, {0, 1, 3, 2}, 0);
      });
}

TEST(Dispatch, RefusesRowsThatDoNotFit) {
  for (const Implementation<DispatchPackArgs>& implementation :
       implementations<DispatchPackArgs>()) {
    Buffers b(DType::kF32);
    DispatchPackArgs a = pack(b, kShapes[3], 4, 0);
    a.rows = a.rows.slice(0, 0, a.rows.rows() - 1);
    EXPECT_THROW(run_once(implementation, a, 1), InvariantError) << implementation.name;
  }
}

}  // namespace
}  // namespace rondo::testing

#include "kernels/ops/grouped_gemm.h"

#include <cmath>
#include <limits>

#include "conformance.h"
#include "kernels/ops/grouped_gemm_cost.h"

namespace rondo::testing {
namespace {

using Form = GroupedGemmArgs::Form;

struct Case {
  const char* name;
  std::vector<int> sizes;  // rows of each group
  int64_t past;            // rows after the last group
  int64_t n, k, gap;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"one row", {1}, 0, 1, 1, 0},
      {"primes", {3, 7, 2}, 2, 5, 11, 1},
      {"empty first, between and last", {0, 5, 0, 0, 17, 0}, 3, 33, 13, 0},
      {"all empty", {0, 0, 0}, 4, 6, 5, 0},
      {"no rows at all", {0, 0}, 0, 6, 5, 0},
      {"skewed", {1, 150, 2, 1}, 0, 19, 40, 2},
      {"long rows", {20, 9}, 1, 40, 300, 0},
      {"near even", {42, 24, 18, 12}, 5, 64, 32, 0},
      {"tall", {130, 300}, 3, 35, 21, 0},
      {"several tiles", {9, 3}, 1, 400, 270, 0},
      {"nothing to sum", {3, 4}, 2, 5, 0, 0},
      {"no columns", {3, 4}, 0, 0, 5, 0},
  };
  return all;
}

struct Rows {
  int64_t in_groups = 0, all = 0;
  std::vector<int32_t> offsets{0};
};
Rows rows_of(const Case& c) {
  Rows r;
  for (const int size : c.sizes) {
    r.in_groups += size;
    r.offsets.push_back(static_cast<int32_t>(r.in_groups));
  }
  r.all = r.in_groups + c.past;
  return r;
}

// What stands past the last group must not matter: rows of NaN, and indices that point nowhere.
void poison(const View& matrix, int64_t from) {
  for (int64_t i = from * matrix.cols(); i < matrix.elements(); ++i)
    set_element(matrix, i, std::nan(""));
}

struct Operand {
  View matrix, rows;
};
Operand operand(Buffers& b, const Rows& r, int64_t cols, int64_t gap, bool gather) {
  Operand o;
  if (gather) {
    const int64_t source = 2 * r.all / 3 + 1;  // some rows serve more than once
    std::vector<int32_t> rows;
    for (int64_t i = 0; i < r.all; ++i)
      rows.push_back(i < r.in_groups ? static_cast<int32_t>((i * 5 + 3) % source)
                                     : std::numeric_limits<int32_t>::max() - 1);
    o.matrix = b.random({source, cols}, -1, 1, gap);
    o.rows = b.ints({r.all}, rows);
  } else {
    o.matrix = b.random({r.all, cols}, -1, 1, gap);
    poison(o.matrix, r.in_groups);
  }
  return o;
}

GroupedGemmArgs products(Buffers& b, const Case& c, Form form, bool gather) {
  const Rows r = rows_of(c);
  const auto groups = static_cast<int64_t>(c.sizes.size());
  GroupedGemmArgs g;
  g.form = form;
  const Operand a = operand(b, r, c.k, c.gap, gather);
  g.a = a.matrix;
  g.a_rows = a.rows;
  g.b = form == Form::kNT ? b.random({groups, c.n, c.k}, -1, 1, c.gap)
                          : b.random({groups, c.k, c.n}, -1, 1, c.gap);
  g.offsets = b.ints({groups + 1}, r.offsets);
  g.c = b.random({r.all, c.n}, 50, 60, 2 * c.gap);
  for (int64_t i = 0; i < r.in_groups * c.n; ++i) set_element(g.c, i, std::nan(""));
  return g;
}

TEST(GroupedGemm, EveryForm) {
  for (const Case& c : cases())
    for (const Form form : {Form::kNT, Form::kNN})
      for (const bool gather : {false, true})
        conform<GroupedGemmArgs>(
            std::string(c.name) + (form == Form::kNT ? ", NT" : ", NN") + (gather ? ", rows" : ""),
            [&](Buffers& b) { return products(b, c, form, gather); });
}

TEST(GroupedGemm, RowsPastTheLastGroupKeepTheirBits) {
  const Case c{"", {3, 0, 30}, 9, 21, 13, 1};
  for (const auto& implementation : implementations<GroupedGemmArgs>())
    for (const bool gather : {false, true}) {
      Buffers b(DType::kF32);
      const GroupedGemmArgs g = products(b, c, Form::kNT, gather);
      const auto before = detail::bits(g.c.slice(0, 33, 42));
      run_once(implementation, g, 3);
      EXPECT_EQ(detail::bits(g.c.slice(0, 33, 42)), before) << implementation.name;
      for (int64_t i = 0; i < 33 * c.n; ++i)
        ASSERT_TRUE(std::isfinite(element(g.c, i))) << implementation.name << ", element " << i;
    }
}

// With identity matrices what comes out is the gathered rows, bit for bit.
TEST(GroupedGemm, IdentityExpertsReturnTheirRows) {
  const Case c{"", {5, 0, 11, 60}, 0, 37, 37, 0};
  for (const auto& implementation : implementations<GroupedGemmArgs>())
    for (const Form form : {Form::kNT, Form::kNN}) {
      Buffers b(DType::kF32);
      const GroupedGemmArgs g = products(b, c, form, true);
      for (int64_t i = 0; i < g.b.elements(); ++i)
        set_element(g.b, i, i % (37 * 37) % 38 == 0 ? 1 : 0);
      run_once(implementation, g, 2);
      for (int64_t r = 0; r < g.c.rows(); ++r)
        for (int64_t j = 0; j < 37; ++j)
          ASSERT_EQ(element(g.c, r * 37 + j), element(g.a, g.a_rows.as<int32_t>()[r] * 37 + j))
              << implementation.name << ", row " << r;
    }
}

GroupedWgradArgs gradients(Buffers& b, const Case& c, bool gather_a, bool gather_b,
                           bool accumulate) {
  const Rows r = rows_of(c);
  const auto groups = static_cast<int64_t>(c.sizes.size());
  GroupedWgradArgs g;
  const Operand a = operand(b, r, c.n, c.gap, gather_a), o = operand(b, r, c.k, c.gap, gather_b);
  g.a = a.matrix;
  g.a_rows = a.rows;
  g.b = o.matrix;
  g.b_rows = o.rows;
  g.offsets = b.ints({groups + 1}, r.offsets);
  g.c =
      accumulate ? b.random({groups, c.n, c.k}, -1, 1, c.gap) : b.output({groups, c.n, c.k}, c.gap);
  g.accumulate = accumulate;
  return g;
}

TEST(GroupedWgrad, EveryOperand) {
  for (const Case& c : cases())
    for (const bool gather_a : {false, true})
      for (const bool gather_b : {false, true})
        for (const bool accumulate : {false, true})
          conform<GroupedWgradArgs>(
              std::string(c.name) + (gather_a ? ", rows of a" : "") +
                  (gather_b ? ", rows of b" : "") + (accumulate ? ", added" : ""),
              [&](Buffers& b) { return gradients(b, c, gather_a, gather_b, accumulate); });
}

// An expert without tokens: zeros even where NaN stood; where it is added, c as it is.
TEST(GroupedWgrad, EmptyGroup) {
  const Case c{"", {4, 0, 3}, 2, 9, 17, 0};
  for (const auto& implementation : implementations<GroupedWgradArgs>())
    for (const bool accumulate : {false, true}) {
      Buffers b(DType::kF32);
      const GroupedWgradArgs g = gradients(b, c, false, true, accumulate);
      const auto before = detail::bits(g.c[1]);
      run_once(implementation, g, 2);
      if (accumulate) {
        EXPECT_EQ(detail::bits(g.c[1]), before) << implementation.name;
      } else {
        for (int64_t i = 0; i < g.c[1].elements(); ++i)
          ASSERT_EQ(element(g.c[1], i), 0) << implementation.name;
      }
    }
}

TEST(GroupedGemm, GradientByFiniteDifferences) {
  const Case c{"", {3, 0, 4}, 0, 5, 2, 0};
  for (const bool gather : {false, true}) {
    Buffers b(DType::kF64);
    const GroupedGemmArgs y = products(b, c, Form::kNT, gather);
    const View dy = b.random({7, c.n});
    GroupedWgradArgs dw;
    dw.a = dy;
    dw.b = y.a;
    dw.b_rows = y.a_rows;
    dw.offsets = y.offsets;
    dw.c = b.output({3, c.n, c.k});
    dw.accumulate = false;
    reference(dw);
    std::vector<std::pair<View, View>> inputs = {{y.b, dw.c}};
    if (!gather) {
      GroupedGemmArgs dx;
      dx.form = Form::kNN;
      dx.a = dy;
      dx.b = y.b;
      dx.offsets = y.offsets;
      dx.c = b.output({7, c.k});
      reference(dx);
      inputs.emplace_back(y.a, dx.c);
    }
    expect_gradient(
        "grouped_gemm",
        [&] {
          reference(y);
          return weighted_sum(y.c, dy);
        },
        inputs);
  }
}

TEST(GroupedGemm, ShapesThatDoNotFitAreRefused) {
  Buffers b(DType::kF32);
  const Case c{"", {3, 4}, 0, 5, 6, 0};
  GroupedGemmArgs g = products(b, c, Form::kNT, true);
  EXPECT_NO_THROW(g.check());
  g.form = Form::kNN;
  EXPECT_THROW(g.check(), InvariantError);
  GroupedWgradArgs w = gradients(b, c, false, false, true);
  EXPECT_NO_THROW(w.check());
  w.offsets = b.ints({2}, {0, 7});
  EXPECT_THROW(w.check(), InvariantError);
}

TEST(GroupedGemm, Cost) {
  EXPECT_EQ(grouped_gemm_cost(10, 2, 3, 5).model_flops, 300);
  EXPECT_EQ(grouped_gemm_cost(10, 2, 3, 5).bytes, 4 * (80 + 30) + 12);
  EXPECT_EQ(grouped_gemm_cost(10, 2, 3, 5, true).bytes, 4 * (80 + 30) + 12 + 40);
  EXPECT_EQ(grouped_wgrad_cost(10, 2, 3, 5).model_flops, 300);
  EXPECT_EQ(grouped_wgrad_cost(10, 2, 3, 5, true, 2).bytes, 4 * (80 + 60) + 12 + 80);
}

}  // namespace
}  // namespace rondo::testing

#include "kernels/ops/gemm.h"

#include <cmath>
#include <limits>

#include "conformance.h"
#include "kernels/ops/gemm_cost.h"

namespace rondo::testing {
namespace {

using Form = GemmArgs::Form;
constexpr Form kForms[] = {Form::kNT, Form::kNN, Form::kTN};

struct Shape {
  int64_t m, n, k, gap;
};
// One element; edges of every tile; rows and columns alone; lengths that are cut into blocks.
constexpr Shape kShapes[] = {
    {1, 1, 1, 0},     {2, 3, 5, 1},      {1, 67, 19, 0},    {67, 1, 19, 2},
    {7, 33, 1, 0},    {17, 31, 257, 3},  {3, 5, 1031, 0},   {64, 64, 64, 0},
    {145, 97, 40, 1}, {37, 523, 300, 0}, {203, 150, 90, 1},
};

GemmArgs matrices(Buffers& b, Form form, const Shape& s, bool accumulate) {
  GemmArgs g;
  g.form = form;
  g.accumulate = accumulate;
  g.a = form == Form::kTN ? b.random({s.k, s.m}, -1, 1, s.gap) : b.random({s.m, s.k}, -1, 1, s.gap);
  g.b = form == Form::kNT ? b.random({s.n, s.k}, -1, 1, 2 * s.gap)
                          : b.random({s.k, s.n}, -1, 1, 2 * s.gap);
  g.c = accumulate ? b.random({s.m, s.n}, -1, 1, s.gap) : b.output({s.m, s.n}, s.gap);
  return g;
}

std::string label(Form form, const Shape& s, bool accumulate) {
  return std::string(form == Form::kNT   ? "NT "
                     : form == Form::kNN ? "NN "
                                         : "TN ") +
         std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
         (accumulate ? " added" : "");
}

TEST(Gemm, EveryForm) {
  for (const Form form : kForms)
    for (const Shape& s : kShapes)
      for (const bool accumulate : {false, true})
        conform<GemmArgs>(label(form, s, accumulate),
                          [&](Buffers& b) { return matrices(b, form, s, accumulate); });
}

// Nothing to sum: zeros, or c as it is. No rows or no columns: nothing happens.
TEST(Gemm, Empty) {
  constexpr Shape kEmpty[] = {{5, 9, 0, 0}, {0, 9, 3, 0}, {5, 0, 3, 0}, {0, 0, 0, 0}};
  for (const Form form : kForms)
    for (const Shape& s : kEmpty)
      for (const bool accumulate : {false, true})
        conform<GemmArgs>(label(form, s, accumulate),
                          [&](Buffers& b) { return matrices(b, form, s, accumulate); });
}

// Small whole numbers: every order of additions gives the same, so the answer is exact, and the
// reference itself is held against a product written out here.
TEST(Gemm, WholeNumbersAreExact) {
  constexpr int64_t kM = 19, kN = 37, kK = 263;
  for (const auto& implementation : implementations<GemmArgs>())
    for (const Form form : kForms) {
      Buffers b(DType::kF32);
      GemmArgs g = matrices(b, form, {kM, kN, kK, 0}, true);
      const auto a_at = [&](int64_t i, int64_t p) { return (i * 5 + p * 3) % 7 - 3; };
      const auto b_at = [&](int64_t p, int64_t j) { return (j * 11 + p) % 5 - 2; };
      for (int64_t p = 0; p < kK; ++p) {
        for (int64_t i = 0; i < kM; ++i)
          set_element(g.a, form == Form::kTN ? p * kM + i : i * kK + p,
                      static_cast<double>(a_at(i, p)));
        for (int64_t j = 0; j < kN; ++j)
          set_element(g.b, form == Form::kNT ? j * kK + p : p * kN + j,
                      static_cast<double>(b_at(p, j)));
      }
      for (int64_t i = 0; i < kM * kN; ++i) set_element(g.c, i, static_cast<double>(i % 3));
      run_once(implementation, g, 2);
      for (int64_t i = 0; i < kM; ++i)
        for (int64_t j = 0; j < kN; ++j) {
          int64_t sum = (i * kN + j) % 3;
          for (int64_t p = 0; p < kK; ++p) sum += a_at(i, p) * b_at(p, j);
          ASSERT_EQ(element(g.c, i * kN + j), static_cast<double>(sum))
              << implementation.name << " at " << i << ", " << j;
        }
    }
}

// An element's bits depend on its row of a and its column of b, not on what else is computed: the
// same tokens give the same numbers in a batch of any size.
TEST(Gemm, RowsDoNotDependOnTheirCompany) {
  constexpr int64_t kM = 211, kN = 301, kK = 270;
  for (const Form form : {Form::kNT, Form::kNN})
    for (const auto& implementation : implementations<GemmArgs>())
      for (const auto& [target, name] : targets()) {
        force_target(target);
        Buffers b(DType::kF32);
        const GemmArgs whole = matrices(b, form, {kM, kN, kK, 0}, false);
        run_once(implementation, whole, 2);
        const auto expected = detail::bits(whole.c.slice(0, 77, 90));
        GemmArgs part = whole;
        part.a = whole.a.slice(0, 77, 90);
        part.c = b.output({13, kN});
        run_once(implementation, part, 1);
        EXPECT_EQ(detail::bits(part.c), expected) << implementation.name << " on " << name;
      }
  force_target(0);
}

// A NaN or an infinity in one row of a stays in that row of c.
TEST(Gemm, BadRowsStayApart) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const Form form : kForms)
    conform<GemmArgs>("bad rows", [&](Buffers& b) {
      constexpr int64_t kM = 29, kK = 41;
      const GemmArgs g = matrices(b, form, {kM, 35, kK, 0}, false);
      const auto at = [&](int64_t i, int64_t p) {
        return form == Form::kTN ? p * kM + i : i * kK + p;
      };
      set_element(g.a, at(3, 7), std::nan(""));
      set_element(g.a, at(28, 40), kInf);
      return g;
    });
}

// y = x w^T, and the two products that a linear layer's backward is made of.
TEST(Gemm, GradientByFiniteDifferences) {
  constexpr int64_t kTokens = 5, kIn = 7, kOut = 3;
  Buffers b(DType::kF64);
  GemmArgs y = matrices(b, Form::kNT, {kTokens, kOut, kIn, 0}, false);
  const View dy = b.random({kTokens, kOut});
  GemmArgs dx, dw;
  dx.form = Form::kNN;
  dx.a = dy;
  dx.b = y.b;
  dx.c = b.output({kTokens, kIn});
  dw.form = Form::kTN;
  dw.a = dy;
  dw.b = y.a;
  dw.c = b.output({kOut, kIn});
  reference(dx);
  reference(dw);
  expect_gradient("gemm",
                  [&] {
                    reference(y);
                    return weighted_sum(y.c, dy);
                  },
                  {{y.a, dx.c}, {y.b, dw.c}});
}

TEST(Gemm, ShapesThatDoNotFitAreRefused) {
  Buffers b(DType::kF32);
  for (const Form form : kForms) {
    const GemmArgs fits = matrices(b, form, {4, 5, 6, 0}, false);
    EXPECT_NO_THROW(fits.check());
    GemmArgs bad = fits;
    bad.c = b.output({4, 6});
    EXPECT_THROW(bad.check(), InvariantError);
    bad = fits;
    bad.a = b.random({7, 7});
    EXPECT_THROW(bad.check(), InvariantError);
  }
}

TEST(Gemm, Cost) {
  const Cost cost = gemm_cost(2, 3, 5);
  EXPECT_EQ(cost.model_flops, 60);
  EXPECT_EQ(cost.bytes, 4 * (10 + 15 + 6));
  EXPECT_EQ(gemm_cost(2, 3, 5, true).bytes, 4 * (10 + 15 + 12));
}

}  // namespace
}  // namespace rondo::testing

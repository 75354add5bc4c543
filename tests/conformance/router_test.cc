#include "kernels/ops/router.h"

#include <cmath>
#include <numeric>

#include "each_implementation.h"

namespace rondo::testing {
namespace {

using Scoring = RouterRule::Scoring;

RouterRule rule_of(Scoring scoring, int k, bool normalise, float scaling, int groups = 1,
                   int kept = 1) {
  RouterRule rule;
  rule.scoring = scoring;
  rule.k = k;
  rule.normalise = normalise;
  rule.scaling = scaling;
  rule.n_group = groups;
  rule.topk_group = kept;
  return rule;
}

// Negative lengths are padding, whose logits are NaN.
RouterArgs router(Buffers& b, const std::vector<int>& lengths, int64_t experts,
                  const RouterRule& rule, bool bias) {
  RouterArgs a;
  a.places = b.places(lengths);
  const int64_t tokens = a.places.rows();
  a.logits = b.random({tokens, experts}, -3, 3, experts % 3);
  for (int64_t t = 0; t < tokens; ++t)
    if (element(a.places, 4 * t + 2) < 0) poison_row(a.logits, t);
  if (bias) a.bias = b.random({experts}, -0.5, 0.5);
  a.experts = b.int_output(DType::kI32, {tokens, rule.k});
  a.weights = b.output({tokens, rule.k}, 1);
  a.rule = rule;
  return a;
}

struct Shape {
  std::vector<int> lengths;
  int64_t experts;
  int k, groups, kept;
};
const Shape kShapes[] = {{{1}, 1, 1, 1, 1},         {{2, -1}, 7, 2, 1, 1},
                         {{5, 4, -2}, 12, 3, 4, 2}, {{67, -3}, 33, 6, 3, 1},
                         {{131}, 64, 8, 8, 4},      {{}, 8, 2, 1, 1},
                         {{9}, 8, 4, 8, 4},         {{13, -1}, 256, 8, 8, 4}};

TEST(Router, ChoosesAndWeighs) {
  for (const Shape& s : kShapes)
    for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
      for (const bool normalise : {false, true}) {
        const RouterRule rule = rule_of(scoring, s.k, normalise, 2.5f, s.groups, s.kept);
        conform<RouterArgs>(std::to_string(s.experts) + " experts", [&](Buffers& b) {
          return router(b, s.lengths, s.experts, rule, true);
        });
      }
}

// Far apart, but still told apart in fp32: sigmoids far below 1, exponentials above 1e-38.
TEST(Router, ScoresOfManyMagnitudes) {
  for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
    for (const bool normalise : {false, true})
      conform<RouterArgs>("magnitudes", [&](Buffers& b) {
        RouterArgs a = router(b, {40}, 19, rule_of(scoring, 4, normalise, 1), false);
        a.logits = scoring == Scoring::kSigmoid ? b.random({40, 19}, -60, -1)
                                                : b.random({40, 19}, -40, 40);
        return a;
      });
}

TEST(Router, ReplayKeepsTheChoice) {
  conform<RouterArgs>("replay", [&](Buffers& b) {
    RouterArgs a = router(b, {6, 3, -2}, 10, rule_of(Scoring::kSigmoid, 3, true, 1.5f), true);
    a.experts = b.ints({11, 3}, some_experts(a.places, 10, 3));
    a.replay = true;
    return a;
  });
}

double logit(double score) {
  return std::log(score / (1 - score));
}

// One token; the bias is left out when empty.
void example(const std::vector<double>& logits, const std::vector<double>& bias,
             const RouterRule& rule, const std::vector<int>& experts,
             const std::vector<double>& weights, double tolerance = 5e-5) {
  const auto n = static_cast<int64_t>(logits.size());
  each_implementation<RouterArgs>(
      [&](Buffers& b) {
        RouterArgs a = router(b, {1}, n, rule, false);
        a.logits = b.values({1, n}, logits);
        if (!bias.empty()) a.bias = b.values({n}, bias);
        return a;
      },
      [&](const RouterArgs& a) {
        for (size_t j = 0; j < experts.size(); ++j) EXPECT_EQ(element(a.experts, j), experts[j]);
        expect_near(a.weights, weights, tolerance);
      });
}

const std::vector<double> kScores = {logit(.6), logit(.5), logit(.3), logit(.2)};

TEST(Router, BiasChoosesButDoesNotWeigh) {
  const RouterRule rule = rule_of(Scoring::kSigmoid, 2, true, 1);
  example(kScores, {-.2, 0, 0, .5}, rule, {3, 1}, {.2857, .7143});
  RouterRule scaled = rule;
  scaled.scaling = 2.5f;
  example(kScores, {-.2, 0, 0, .5}, scaled, {3, 1}, {2.5 * .2 / .7, 2.5 * .5 / .7});
  scaled.normalise = false;
  example(kScores, {-.2, 0, 0, .5}, scaled, {3, 1}, {.5, 1.25});
}

TEST(Router, ExpertsOfOtherGroupsAreOutEvenWhereScoresAreNegative) {
  example(kScores, {-1, -1, -1, -1}, rule_of(Scoring::kSigmoid, 2, true, 1, 2, 1), {0, 1},
          {.5455, .4545});
  // The best expert alone does not make the best group: .9 + .1 < .6 + .5.
  example({logit(.9), logit(.1), logit(.6), logit(.5)}, {},
          rule_of(Scoring::kSigmoid, 1, true, 1, 2, 1), {2}, {1});
  // A bias of -inf inside a kept group still goes before what lies outside.
  const double inf = std::numeric_limits<double>::infinity();
  example(kScores, {0, 0, -inf, -inf}, rule_of(Scoring::kSigmoid, 4, false, 1, 2, 2), {0, 1, 2, 3},
          {.6, .5, .3, .2});
}

TEST(Router, TiesGoToTheLowerIndex) {
  const RouterRule rule = rule_of(Scoring::kSigmoid, 3, true, 1);
  example({0, 1, 0, 1, 0, 1}, {}, rule, {1, 3, 5}, {1. / 3, 1. / 3, 1. / 3});
  example({0, 0, 1, 0, 0, 0}, {}, rule, {2, 0, 1},
          {1 / (1 + 1 / (.7310586)), .5 / 1.7310586, .5 / 1.7310586});
  // Across groups, of which the better one stands behind.
  example({0, 0, 0, 2, -1, -1}, {}, rule_of(Scoring::kSigmoid, 2, false, 1, 3, 2), {3, 0},
          {.880797, .5});
  // Groups that tie, too.
  example({0, 0, 0, 0, 0, 0}, {}, rule_of(Scoring::kSigmoid, 2, true, 1, 3, 2), {0, 1}, {.5, .5});
  example({0, 0, 2, 2, 0, 0}, {}, rule_of(Scoring::kSigmoid, 3, false, 1, 3, 2), {2, 3, 0},
          {.880797, .880797, .5});
}

TEST(Router, TinyScoresStillShareOut) {
  for (const double x : {-60., -200.})
    example(std::vector<double>(8, x), {}, rule_of(Scoring::kSigmoid, 4, true, 1), {0, 1, 2, 3},
            {.25, .25, .25, .25}, 0);
  // Ratios survive where the scores do not: e^1 between neighbours.
  example({-200, -201, -300}, {0, 0, 0}, rule_of(Scoring::kSigmoid, 2, true, 1), {0, 1},
          {.7310586, .2689414}, 1e-7);
}

TEST(Router, SoftmaxIsOverAllExperts) {
  // exp: 8 4 2 2, sum 16. Softmax after the choice would give the normalised weights always.
  const std::vector<double> x = {std::log(8), std::log(4), std::log(2), std::log(2)};
  example(x, {}, rule_of(Scoring::kSoftmax, 2, false, 1), {0, 1}, {.5, .25}, 1e-6);
  example(x, {}, rule_of(Scoring::kSoftmax, 2, true, 1), {0, 1}, {2. / 3, 1. / 3}, 1e-6);
  example(x, {0, 0, .5, 0}, rule_of(Scoring::kSoftmax, 2, false, 1), {2, 0}, {.125, .5}, 1e-6);
}

TEST(Router, NaNDoesNotLeaveTheRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
    each_implementation<RouterArgs>(
        [&](Buffers& b) {
          RouterArgs a = router(b, {1}, 4, rule_of(scoring, 3, true, 1), false);
          a.logits = b.values({1, 4}, {nan, 1, nan, nan});
          return a;
        },
        [&](const RouterArgs& a) {
          const std::vector<int> want =
              scoring == Scoring::kSigmoid ? std::vector{1, 0, 2} : std::vector{0, 1, 2};
          for (int j = 0; j < 3; ++j) EXPECT_EQ(element(a.experts, j), want[j]);
          EXPECT_TRUE(std::isnan(element(a.weights, 0)));
        });
}

TEST(Router, ReplayRefusesAnExpertThatIsNotThere) {
  for (const Implementation<RouterArgs>& implementation : implementations<RouterArgs>()) {
    Buffers b(DType::kF32);
    RouterArgs a = router(b, {1}, 4, rule_of(Scoring::kSigmoid, 2, true, 1), false);
    a.experts = b.ints({1, 2}, {1, 4});
    a.replay = true;
    EXPECT_THROW(run_once(implementation, a, 1), InvariantError) << implementation.name;
  }
}

// Slots go to rows in reverse; every seventh has no row.
RouterBackwardArgs backward(Buffers& b, const View& logits, const View& experts,
                            const RouterRule& rule) {
  const int64_t tokens = logits.rows(), slots = tokens * rule.k;
  RouterBackwardArgs a;
  a.logits = logits;
  a.experts = experts;
  std::vector<int32_t> rows(slots);
  for (int64_t s = 0; s < slots; ++s)
    rows[s] = element(experts, s) < 0 || s % 7 == 3 ? -1 : static_cast<int32_t>(slots - 1 - s);
  a.slot_row = b.ints({tokens, rule.k}, rows);
  a.d_row_weight = b.random({slots});
  a.d_logits = b.output({tokens, logits.cols()}, 2);
  a.rule = rule;
  return a;
}

TEST(Router, Backward) {
  for (const Shape& s : kShapes)
    for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
      for (const bool normalise : {false, true}) {
        const RouterRule rule = rule_of(scoring, s.k, normalise, 2.5f);
        conform<RouterBackwardArgs>(std::to_string(s.experts) + " experts", [&](Buffers& b) {
          RouterArgs f = router(b, s.lengths, s.experts, rule, false);
          f.experts = b.ints({f.places.rows(), rule.k}, some_experts(f.places, s.experts, rule.k));
          return backward(b, f.logits, f.experts, rule);
        });
      }
}

TEST(Router, GradientByFiniteDifferences) {
  for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
    for (const bool normalise : {false, true}) {
      const RouterRule rule = rule_of(scoring, 3, normalise, 1.5f);
      Buffers b(DType::kF64);
      RouterArgs f = router(b, {5}, 7, rule, true);
      reference(f);
      f.replay = true;  // the choice is a constant
      const RouterBackwardArgs g = backward(b, f.logits, f.experts, rule);
      reference(g);
      expect_gradient("router",
                      [&] {
                        reference(f);
                        double loss = 0;
                        for (int64_t s = 0; s < f.weights.elements(); ++s)
                          if (const auto r = static_cast<int64_t>(element(g.slot_row, s)); r >= 0)
                            loss += element(f.weights, s) * element(g.d_row_weight, r);
                        return loss;
                      },
                      {{f.logits, g.d_logits}});
    }
}

}  // namespace
}  // namespace rondo::testing

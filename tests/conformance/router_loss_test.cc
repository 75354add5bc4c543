#include "kernels/ops/router_loss.h"

#include <cmath>

#include "each_implementation.h"

namespace rondo::testing {
namespace {

using Scoring = RouterRule::Scoring;

struct Shape {
  std::vector<int> lengths;
  int64_t experts, k, docs;
};
// More documents than have tokens; documents that end inside blocks of any size.
const Shape kShapes[] = {
    {{1}, 1, 1, 1},  {{3, -2, 4}, 7, 2, 5},          {{}, 5, 2, 2},
    {{-3}, 4, 1, 1}, {{61, 1, 5, -7, 64}, 33, 4, 4}, {{150, -1, 119}, 130, 6, 2}};

RouterStatsArgs stats(Buffers& b, const Shape& s, Scoring scoring, double range = 3) {
  RouterStatsArgs a;
  a.places = b.places(s.lengths);
  const int64_t tokens = a.places.rows();
  a.logits = b.random({tokens, s.experts}, -range, range, s.experts % 4);
  for (int64_t t = 0; t < tokens; ++t)
    if (element(a.places, 4 * t + 2) < 0) poison_row(a.logits, t);
  a.experts = b.ints({tokens, s.k}, some_experts(a.places, s.experts, s.k));
  a.counts = b.output({s.docs, s.experts}, 1);
  a.score_sum = b.output({s.docs, s.experts}, 2);
  a.doc_tokens = b.output({s.docs});
  a.z_sum = b.output({1});
  a.scoring = scoring;
  return a;
}

RouterLossArgs loss_of(Buffers& b, const RouterStatsArgs& s, float balance, float z) {
  RouterLossArgs a;
  a.counts = s.counts;
  a.score_sum = s.score_sum;
  a.doc_tokens = s.doc_tokens;
  a.z_sum = s.z_sum;
  a.losses = b.values({2}, {0.5, 0.25});
  a.k = static_cast<int32_t>(s.experts.cols());
  a.balance_scale = balance;
  a.z_scale = z;
  return a;
}

RouterLossBackwardArgs backward_of(Buffers& b, const RouterStatsArgs& s, float balance, float z) {
  RouterLossBackwardArgs a;
  a.logits = s.logits;
  a.places = s.places;
  a.counts = s.counts;
  a.doc_tokens = s.doc_tokens;
  a.d_logits = b.random({s.logits.rows(), s.logits.cols()}, -0.01, 0.01, 1);
  a.k = static_cast<int32_t>(s.experts.cols());
  a.scoring = s.scoring;
  a.balance_scale = balance;
  a.z_scale = z;
  return a;
}

TEST(RouterLoss, Stats) {
  for (const Shape& s : kShapes)
    for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
      for (const double range : {3., 40.})
        conform<RouterStatsArgs>(std::to_string(s.experts) + " experts",
                                 [&](Buffers& b) { return stats(b, s, scoring, range); });
}

TEST(RouterLoss, Value) {
  for (const Shape& s : kShapes)
    conform<RouterLossArgs>(std::to_string(s.experts) + " experts", [&](Buffers& b) {
      const RouterStatsArgs f = stats(b, s, Scoring::kSigmoid);
      reference(f);
      return loss_of(b, f, 0.01f, 0.001f);
    });
}

TEST(RouterLoss, Backward) {
  for (const Shape& s : kShapes)
    for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
      for (const auto& [balance, z] : {std::pair{0.1f, 0.f}, {0.f, 0.01f}, {0.1f, 0.01f}})
        conform<RouterLossBackwardArgs>(std::to_string(s.experts) + " experts", [&](Buffers& b) {
          const RouterStatsArgs f = stats(b, s, scoring);
          reference(f);
          return backward_of(b, f, balance, z);
        });
}

TEST(RouterLoss, GradientByFiniteDifferences) {
  for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
    for (const auto& [balance, z] : {std::pair{0.7f, 0.f}, {0.f, 0.3f}, {0.7f, 0.3f}}) {
      Buffers b(DType::kF64);
      const RouterStatsArgs f = stats(b, {{4, 2}, 5, 2, 2}, scoring);
      const RouterLossArgs l = loss_of(b, f, balance, z);
      reference(f);
      const RouterLossBackwardArgs g = backward_of(b, f, balance, z);
      for (int64_t i = 0; i < g.d_logits.elements(); ++i) set_element(g.d_logits, i, 0);
      reference(g);
      expect_gradient("router_loss",
                      [&] {
                        set_element(l.losses, 0, 0);
                        set_element(l.losses, 1, 0);
                        reference(f);
                        reference(l);
                        return element(l.losses, 0) + element(l.losses, 1);
                      },
                      {{f.logits, g.d_logits}});
    }
}

// Runs stats by each implementation and the loss on top; hands over both.
template <class Check>
void example(const std::vector<int>& lengths, int64_t experts, int64_t k, int64_t docs,
             Scoring scoring, const std::vector<double>& logits, const std::vector<int32_t>& chosen,
             float balance, float z, Check check) {
  each_implementation<RouterStatsArgs>(
      [&](Buffers& b) {
        RouterStatsArgs a = stats(b, {lengths, experts, k, docs}, scoring);
        a.logits = b.values({a.places.rows(), experts}, logits);
        a.experts = b.ints({a.places.rows(), k}, chosen);
        return a;
      },
      [&](const RouterStatsArgs& s) {
        for (const Implementation<RouterLossArgs>& by : implementations<RouterLossArgs>()) {
          Buffers b(s.logits.dtype);
          RouterLossArgs l = loss_of(b, s, balance, z);
          l.losses = b.values({2}, {0, 0});
          if (by.refuse && by.refuse(l)) continue;
          run_once(by, l, 2);
          check(s, l.losses);
        }
      });
}

// E = 8, k = 2, eight tokens that go everywhere evenly: 1, however small the scores are.
TEST(RouterLoss, BalanceOfTinyScoresIsOne) {
  for (const double x : {-60., -200., 0., 90.})
    for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax}) {
      std::vector<int32_t> chosen;
      for (int t = 0; t < 8; ++t) chosen.insert(chosen.end(), {t, (t + 3) % 8});
      example({8}, 8, 2, 1, scoring, std::vector<double>(64, x), chosen, 1.f / 8, 0,
              [&](const RouterStatsArgs& s, const View& losses) {
                EXPECT_NEAR(element(losses, 0), 1.0, 1e-6) << x;
                EXPECT_NEAR(element(s.score_sum, 7), 1.0, 1e-6) << x;
              });
    }
}

// Two documents that are each one-sided, in opposite ways: per document the loss is high, over the
// batch it would be 1. Three tokens of padding hold NaN.
TEST(RouterLoss, BalanceIsPerDocument) {
  const double l3 = std::log(3), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> logits = {l3, 0, l3, 0, nan, nan, nan, nan, nan, nan, 0, l3};
  // Softmax: 3/4, 1/4. f = (2, 0) and (0, 2): L_d = 2 * 3/4 in both; (2 * 1.5 + 1.5) / 3.
  example({2, -3, 1}, 2, 1, 2, Scoring::kSoftmax, logits, {0, 0, -1, -1, -1, 1}, 1.f / 3, 0,
          [&](const RouterStatsArgs& s, const View& losses) {
            EXPECT_NEAR(element(losses, 0), 1.5, 1e-6);
            expect_near(s.doc_tokens, {2, 1}, 0);
            expect_near(s.counts, {2, 0, 0, 1}, 0);
            expect_near(s.score_sum, {1.5, .5, .25, .75}, 1e-6);
          });
}

// logsumexp of (0, ln 3) is ln 4; of (ln 3, ln 5) ln 8. Padding is not counted.
TEST(RouterLoss, ZLoss) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double want = (std::pow(std::log(4), 2) + std::pow(std::log(8), 2)) / 2;
  for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
    example({1, -1, 1}, 2, 1, 2, scoring, {0, std::log(3), nan, nan, std::log(3), std::log(5)},
            {0, -1, 1}, 0, 1e-3f / 2, [&](const RouterStatsArgs&, const View& losses) {
              EXPECT_NEAR(element(losses, 1), 1e-3 * want, 1e-9);
              EXPECT_EQ(element(losses, 0), 0);
            });
}

TEST(RouterLoss, RefusesADocumentThatIsNotThere) {
  Buffers b(DType::kF32);
  RouterStatsArgs a = stats(b, {{1, 2}, 3, 1, 2}, Scoring::kSigmoid);
  reference(a);
  RouterLossBackwardArgs wrong = backward_of(b, a, 1, 1);
  a.places = wrong.places = b.places({1, 1, 1});
  for (const Implementation<RouterStatsArgs>& by : implementations<RouterStatsArgs>())
    EXPECT_THROW(run_once(by, a, 2), InvariantError) << by.name;
  for (const Implementation<RouterLossBackwardArgs>& by : implementations<RouterLossBackwardArgs>())
    EXPECT_THROW(run_once(by, wrong, 2), InvariantError) << by.name;
}

// A logit that is NaN shows in the sums: it must not pass for a score of 0 or 1.
TEST(RouterLoss, NaNStaysVisible) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Scoring scoring : {Scoring::kSigmoid, Scoring::kSoftmax})
    example({1}, 3, 1, 1, scoring, {1, nan, 0}, {0}, 1, 1,
            [&](const RouterStatsArgs&, const View& losses) {
              EXPECT_TRUE(std::isnan(element(losses, 0)));
              EXPECT_TRUE(std::isnan(element(losses, 1)));
            });
}

}  // namespace
}  // namespace rondo::testing

#include "parallel/dispatch_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace rondo {
namespace {

using Count = DispatchPlan::Count;
using Counts = std::vector<std::vector<Count>>;

// Every tile of `tokens` sends `copies` to each rank that `wants(source, tile)` names, and none to
// others.
Counts counts_of(const std::vector<int64_t>& tokens,
                 const std::function<std::vector<int>(int, int64_t)>& copies) {
  Counts out;
  for (size_t s = 0; s < tokens.size(); ++s) {
    out.emplace_back();
    for (int64_t tile = 0; tile * kDispatchTile < tokens[s]; ++tile)
      for (const int n : copies(static_cast<int>(s), tile))
        out.back().push_back({std::min(n, 64), n});
  }
  return out;
}

TEST(DispatchPlan, BalancedTakesTheLeastWaves) {
  const DispatchPlan plan({256, 256},
                          counts_of({256, 256},
                                    [](int, int64_t) {
                                      return std::vector<int>{64, 64};
                                    }),
                          512, 2);
  ASSERT_EQ(plan.waves(), 2);
  EXPECT_EQ(plan.tokens(0, 1).end, 128);
  EXPECT_EQ(plan.tokens(1, 1).begin, 128);
  EXPECT_EQ(plan.received(0, 0).copies, 256);
  EXPECT_EQ(plan.copies_before(1, 0), 256);
}

// All choose the same rank: more waves, none larger.
TEST(DispatchPlan, SkewMakesWavesNotSize) {
  const std::vector<int64_t> tokens = {256, 256, 256, 256};
  const DispatchPlan plan(tokens,
                          counts_of(tokens,
                                    [](int, int64_t) {
                                      return std::vector<int>{0, 128, 0, 0};
                                    }),
                          256, 2);
  EXPECT_EQ(plan.waves(), 8);
  for (int w = 0; w < plan.waves(); ++w) EXPECT_EQ(plan.received(w, 1).copies, 256);
}

TEST(DispatchPlan, RanksWithoutTokens) {
  const DispatchPlan none({0, 0}, {{}, {}}, 128, 2);
  EXPECT_EQ(none.waves(), 0);
  const DispatchPlan one({0, 65},
                         counts_of({0, 65},
                                   [](int, int64_t) {
                                     return std::vector<int>{10, 20};
                                   }),
                         128, 2);
  ASSERT_EQ(one.waves(), 2);
  EXPECT_EQ(one.tokens(1, 1).end, 65);
  EXPECT_EQ(one.tokens(1, 0).end, 0);
}

TEST(DispatchPlan, RefusesATileThatCannotFit) {
  EXPECT_THROW(DispatchPlan({64}, {{{64, 130}}}, 128, 1), InvariantError);
}

TEST(DispatchPlan, EveryTokenOnceAndNoWaveTooLarge) {
  rc::check([] {
    const int ranks = *rc::gen::inRange(1, 6);
    const int k = *rc::gen::inRange(1, 5);
    const auto tokens = *rc::gen::container<std::vector<int64_t>>(
        static_cast<size_t>(ranks), rc::gen::inRange<int64_t>(0, 700));
    Counts counts;
    int64_t copies = 0;
    for (const int64_t t : tokens) {
      counts.emplace_back();
      for (int64_t tile = 0; tile * kDispatchTile < t; ++tile) {
        const int64_t all = std::min(kDispatchTile, t - tile * kDispatchTile) * k;
        std::vector<Count> mine(static_cast<size_t>(ranks), Count{0, 0});
        for (int64_t i = 0; i < all; ++i)
          ++mine[static_cast<size_t>(*rc::gen::inRange(0, ranks))].copies;
        for (Count& c : mine) c.rows = std::min<int32_t>(c.copies, 64);
        copies += all;
        counts.back().insert(counts.back().end(), mine.begin(), mine.end());
      }
    }
    const int64_t most = kDispatchTile * k * *rc::gen::inRange(1, 4);
    const DispatchPlan plan(tokens, counts, most, *rc::gen::inRange(1, 4));
    int64_t seen = 0;
    std::vector<int64_t> at(static_cast<size_t>(ranks), 0);
    for (int w = 0; w < plan.waves(); ++w)
      for (int r = 0; r < ranks; ++r) {
        RC_ASSERT(plan.tokens(w, r).begin == at[static_cast<size_t>(r)]);
        at[static_cast<size_t>(r)] = plan.tokens(w, r).end;
        RC_ASSERT(plan.received(w, r).copies <= most);
        RC_ASSERT(plan.copies_before(w, r) >= 0);
        seen += plan.sent(w, r).copies;
      }
    RC_ASSERT(at == tokens);
    RC_ASSERT(seen == copies);
  });
}

}  // namespace
}  // namespace rondo

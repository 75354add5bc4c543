#include "parallel/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "base/error.h"

namespace rondo {
namespace {

using Kind = TokenPlacement::Kind;
using Rows = std::vector<std::vector<int64_t>>;

std::vector<Place> documents(const std::vector<int>& lengths) {
  std::vector<Place> out;
  for (size_t d = 0; d < lengths.size(); ++d)
    for (int pos = 0; pos < lengths[d]; ++pos)
      out.push_back({0, static_cast<int32_t>(out.size()), static_cast<int32_t>(d), pos});
  return out;
}

Rows place(Kind kind, const std::vector<int>& lengths, int ranks, bool per_document = true) {
  return place_tokens({kind, per_document}, documents(lengths), ranks);
}

TEST(Placement, Zigzag) {
  EXPECT_EQ(place(Kind::kZigzag, {8}, 2), (Rows{{0, 1, 6, 7}, {2, 3, 4, 5}}));
  EXPECT_EQ(place(Kind::kZigzag, {16}, 4),
            (Rows{{0, 1, 14, 15}, {2, 3, 12, 13}, {4, 5, 10, 11}, {6, 7, 8, 9}}));
  EXPECT_EQ(place(Kind::kZigzag, {8, 4}, 2), (Rows{{0, 1, 6, 7, 8, 11}, {2, 3, 4, 5, 9, 10}}));
}

TEST(Placement, PositionsAreTheTokensOwn) {
  const std::vector<Place> all = documents({4, 4});
  std::vector<std::pair<int, int>> got;
  const Rows rows = place(Kind::kZigzag, {4, 4}, 2);
  for (const int64_t row : rows[0])
    got.emplace_back(all[static_cast<size_t>(row)].doc, all[static_cast<size_t>(row)].pos);
  EXPECT_EQ(got, (std::vector<std::pair<int, int>>{{0, 0}, {0, 3}, {1, 0}, {1, 3}}));
}

TEST(Placement, StripedAndContiguous) {
  EXPECT_EQ(place(Kind::kStriped, {7}, 3), (Rows{{0, 3, 6}, {1, 4}, {2, 5}}));
  EXPECT_EQ(place(Kind::kContiguous, {8}, 2), (Rows{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(place(Kind::kContiguous, {5, 3}, 2, false), (Rows{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

// Visible pairs of each rank: 64 tokens on 4 ranks.
TEST(Placement, WorkIsEqualUnderZigzag) {
  const auto work = [](Kind kind) {
    std::vector<int64_t> pairs;
    for (const std::vector<int64_t>& rows : place(kind, {64}, 4)) {
      pairs.push_back(0);
      for (const int64_t row : rows) pairs.back() += row + 1;
    }
    return pairs;
  };
  EXPECT_EQ(work(Kind::kContiguous), (std::vector<int64_t>{136, 392, 648, 904}));
  EXPECT_EQ(work(Kind::kZigzag), (std::vector<int64_t>(4, 520)));
}

TEST(Placement, AwkwardLengths) {
  const auto sizes = [](const Rows& rows) {
    std::vector<size_t> out;
    for (const std::vector<int64_t>& mine : rows) out.push_back(mine.size());
    return out;
  };
  EXPECT_EQ(sizes(place(Kind::kZigzag, {3}, 4)), (std::vector<size_t>{1, 1, 1, 0}));
  EXPECT_EQ(sizes(place(Kind::kZigzag, {2999}, 4)), (std::vector<size_t>{749, 750, 750, 750}));
  // [4, 3] on 2: the last real token is somebody's.
  const Rows rows = place(Kind::kZigzag, {4, 3}, 2);
  EXPECT_EQ(
      std::count(rows[0].begin(), rows[0].end(), 6) + std::count(rows[1].begin(), rows[1].end(), 6),
      1);
  // Documents of one token do not pile up.
  EXPECT_EQ(sizes(place(Kind::kZigzag, std::vector<int>(16, 1), 4)),
            (std::vector<size_t>{4, 4, 4, 4}));
  EXPECT_EQ(sizes(place(Kind::kContiguous, std::vector<int>(16, 1), 4)),
            (std::vector<size_t>{4, 4, 4, 4}));
}

TEST(Placement, EveryTokenIsHeldOnceAndSharesAreEven) {
  rc::check([] {
    const auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 40));
    const int ranks = *rc::gen::inRange(1, 9);
    const Kind kind = *rc::gen::element(Kind::kContiguous, Kind::kZigzag, Kind::kStriped);
    const Rows rows = place(kind, lengths, ranks, *rc::gen::arbitrary<bool>());
    std::vector<int64_t> all;
    size_t least = SIZE_MAX, most = 0;
    for (const std::vector<int64_t>& mine : rows) {
      RC_ASSERT(std::is_sorted(mine.begin(), mine.end()));
      all.insert(all.end(), mine.begin(), mine.end());
      least = std::min(least, mine.size());
      most = std::max(most, mine.size());
    }
    std::sort(all.begin(), all.end());
    RC_ASSERT(all.size() == documents(lengths).size());
    for (size_t i = 0; i < all.size(); ++i) RC_ASSERT(all[i] == static_cast<int64_t>(i));
    RC_ASSERT(most - least <= 2);  // a zigzag rank holds two chunks
  });
}

TEST(Placement, PartsAreEven) {
  for (const int64_t n : {0, 1, 5, 6, 64})
    for (const int parts : {1, 2, 4, 7}) {
      int64_t at = 0;
      for (int i = 0; i < parts; ++i) {
        const PartRange range = part_range(n, parts, i);
        EXPECT_EQ(range.begin, at);
        EXPECT_TRUE(range.size() == n / parts || range.size() == n / parts + 1);
        for (; at < range.end; ++at) EXPECT_EQ(part_holding(n, parts, at), i);
      }
      EXPECT_EQ(at, n);
    }
}

TEST(Placement, NamesReadBack) {
  for (const char* name : {"zigzag", "contiguous", "striped", "zigzag/sequence"})
    EXPECT_EQ(to_string(parse_placement(name)), name);
  EXPECT_THROW(parse_placement("ring"), InputError);
}

}  // namespace
}  // namespace rondo

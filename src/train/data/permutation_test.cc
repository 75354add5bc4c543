#include "train/data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace rondo {
namespace {

TEST(Permutation, IsOneToOneAtEverySize) {
  for (uint64_t size = 1; size <= 300; ++size) {
    const Permutation order(size, 7, size, 0);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t to = order(i);
      ASSERT_LT(to, size);
      ASSERT_TRUE(seen.insert(to).second) << size << ": " << to << " twice";
    }
  }
}

TEST(Permutation, DependsOnSeedAndBothNumbersAndNothingElse) {
  const auto order = [](uint64_t seed, uint64_t a, uint64_t b) {
    std::vector<uint64_t> out;
    for (uint64_t i = 0; i < 100; ++i) out.push_back(Permutation(100, seed, a, b)(i));
    return out;
  };
  EXPECT_EQ(order(1, 2, 3), order(1, 2, 3));
  EXPECT_NE(order(1, 2, 3), order(2, 2, 3));
  EXPECT_NE(order(1, 2, 3), order(1, 3, 3));
  EXPECT_NE(order(1, 2, 3), order(1, 2, 4));
}

// Every place goes everywhere equally often: chi-square of size x size cells over many orders.
TEST(Permutation, FavoursNoPlace) {
  for (const uint64_t size : {3, 5, 16, 23}) {
    const uint64_t orders = 400 * size;
    std::vector<double> count(size * size);
    for (uint64_t a = 0; a < orders; ++a) {
      const Permutation order(size, 11, a, 0);
      for (uint64_t i = 0; i < size; ++i) ++count[i * size + order(i)];
    }
    double chi2 = 0;
    for (const double c : count) chi2 += (c - 400) * (c - 400) / 400;
    const double freedom = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(chi2, freedom + 5 * std::sqrt(2 * freedom)) << size;
  }
}

TEST(Permutation, ReachesFar) {
  const Permutation order((uint64_t{1} << 61) + 12345, 1, 2, 3);
  EXPECT_NE(order(0), order(1));
  EXPECT_LT(order(uint64_t{1} << 61), (uint64_t{1} << 61) + 12345);
}

}  // namespace
}  // namespace rondo

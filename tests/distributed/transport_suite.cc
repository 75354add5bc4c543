#include "transport_suite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "comm/collectives.h"

namespace rondo::testing {
namespace {

// Byte i of the n-th message from one rank to another.
uint8_t byte_of(int from, int to, int n, int64_t i) {
  return static_cast<uint8_t>(from * 31 + to * 7 + n * 3 + i);
}

// Messages of many sizes between all pairs, oneself included: whole, and in the order of the calls.
void exchange_moves_every_byte(Channel& c) {
  for (const int64_t length : {0, 1, 13, 4096, 300'000}) {
    std::vector<std::vector<uint8_t>> out, in;
    std::vector<Message> sends, receives;
    for (int n = 0; n < 2; ++n)
      for (int peer = 0; peer < c.size(); ++peer) {
        std::vector<uint8_t>& bytes = out.emplace_back(static_cast<size_t>(length + n));
        for (int64_t i = 0; i < length + n; ++i)
          bytes[static_cast<size_t>(i)] = byte_of(c.rank(), peer, n, i);
        in.emplace_back(static_cast<size_t>(length + n), 0xee);
      }
    for (size_t i = 0; i < out.size(); ++i) {
      const int peer = static_cast<int>(i) % c.size();
      sends.push_back({peer, out[i].data(), static_cast<int64_t>(out[i].size())});
      receives.push_back({peer, in[i].data(), static_cast<int64_t>(in[i].size())});
    }
    c.exchange({"test", "", false}, sends, receives);
    for (size_t i = 0; i < in.size(); ++i)
      for (size_t at = 0; at < in[i].size(); ++at)
        ASSERT_EQ(in[i][at], byte_of(static_cast<int>(i) % c.size(), c.rank(),
                                     static_cast<int>(i) / c.size(), static_cast<int64_t>(at)))
            << "message " << i << ", byte " << at;
  }
}

// A ring: everyone passes on what it has; after P hops each token is home.
void rings_come_home(Channel& c) {
  int64_t token = c.rank(), next = -1;
  const int right = (c.rank() + 1) % c.size(), left = (c.rank() + c.size() - 1) % c.size();
  for (int hop = 0; hop < c.size(); ++hop) {
    const Message to{right, &token, sizeof token}, from{left, &next, sizeof next};
    c.exchange({"test", "", false}, {&to, 1}, {&from, 1});
    token = next;
    EXPECT_EQ(token, (c.rank() - hop - 1 + 2 * c.size()) % c.size());
  }
}

// One sends late, the others wait: and what they were sent before is not lost.
void ranks_may_come_late(Channel& c) {
  std::vector<int> got(static_cast<size_t>(c.size()), -1);
  for (int late = 0; late < std::min(c.size(), 3); ++late) {
    if (c.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    int mine = c.rank() * 10 + late;
    const std::vector<int64_t> bytes(static_cast<size_t>(c.size()), sizeof mine);
    all_gather(c, &mine, bytes, got.data());
    for (int r = 0; r < c.size(); ++r) EXPECT_EQ(got[static_cast<size_t>(r)], r * 10 + late);
  }
}

void gathers_unequal_parts(Channel& c) {
  std::vector<int64_t> bytes;
  for (int r = 0; r < c.size(); ++r) bytes.push_back(r % 3 == 1 ? 0 : (r + 1) * 5);
  const std::vector<uint8_t> mine(static_cast<size_t>(bytes[static_cast<size_t>(c.rank())]),
                                  static_cast<uint8_t>(c.rank() + 1));
  std::vector<uint8_t> all(static_cast<size_t>(std::accumulate(bytes.begin(), bytes.end(), 0ll)));
  all_gather(c, mine.data(), bytes, all.data());
  size_t at = 0;
  for (int r = 0; r < c.size(); ++r)
    for (int64_t i = 0; i < bytes[static_cast<size_t>(r)]; ++i) ASSERT_EQ(all[at++], r + 1);
}

void all_to_all_is_a_transpose(Channel& c) {
  const auto count = [&](int from, int to) { return static_cast<int64_t>((from * 3 + to) % 4); };
  std::vector<int64_t> send, receive;
  std::vector<int32_t> in, want;
  for (int r = 0; r < c.size(); ++r) {
    send.push_back(count(c.rank(), r) * 4);
    receive.push_back(count(r, c.rank()) * 4);
    for (int64_t i = 0; i < count(c.rank(), r); ++i) in.push_back(c.rank() * 100 + r);
    for (int64_t i = 0; i < count(r, c.rank()); ++i) want.push_back(r * 100 + c.rank());
  }
  std::vector<int32_t> out(want.size(), -1);
  all_to_all(c, in.data(), send, out.data(), receive);
  EXPECT_EQ(out, want);
}

// 1 + 1e8 - 1e8 in fp32 depends on the order: only the order of the ranks gives this.
float term(int rank, int64_t i) {
  const float large = rank % 2 == 0 ? 1e8f : -1e8f;
  return large + static_cast<float>((rank * 37 + i * 11) % 101) * 0.37f;
}

void sums_are_in_rank_order(Channel& c) {
  std::vector<std::byte> scratch;
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{3000}, kReducePiece + 7,
                              2 * kReducePiece * c.size() + 3}) {
    std::vector<float> mine(static_cast<size_t>(count)), want(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      mine[static_cast<size_t>(i)] = term(c.rank(), i);
      float sum = term(0, i);
      for (int r = 1; r < c.size(); ++r) sum += term(r, i);
      want[static_cast<size_t>(i)] = sum;
    }
    std::vector<int64_t> counts;
    for (int r = 0; r < c.size(); ++r)
      counts.push_back(count * (r + 1) / c.size() - count * r / c.size());
    const int64_t begin = count * c.rank() / c.size();
    std::vector<float> part(static_cast<size_t>(counts[static_cast<size_t>(c.rank())]), NAN);
    reduce_scatter(c, DType::kF32, Reduction::kSum, mine.data(), counts, part.data(), scratch);
    for (size_t i = 0; i < part.size(); ++i)
      ASSERT_EQ(part[i], want[static_cast<size_t>(begin) + i]) << count << " elements, " << i;
    all_reduce(c, DType::kF32, Reduction::kSum, mine.data(), count, scratch);
    ASSERT_EQ(mine, want) << count << " elements";
  }
}

void parts_may_be_empty(Channel& c) {
  std::vector<std::byte> scratch;
  std::vector<int64_t> counts(static_cast<size_t>(c.size()), 0);
  counts.back() = 3;
  const std::vector<double> in = {1, 2, 3};
  std::vector<double> out(3, -1);
  reduce_scatter(c, DType::kF64, Reduction::kSum, in.data(), counts, out.data(), scratch);
  const bool last = c.rank() + 1 == c.size();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(out[static_cast<size_t>(i)], last ? (i + 1) * c.size() : -1);
}

void maxima_keep_nan(Channel& c) {
  std::vector<std::byte> scratch;
  std::vector<double> x = {static_cast<double>(c.rank()), -1.0 - c.rank(),
                           c.rank() == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0};
  all_reduce(c, DType::kF64, Reduction::kMax, x.data(), 3, scratch);
  EXPECT_EQ(x[0], c.size() - 1);
  EXPECT_EQ(x[1], -1);
  EXPECT_TRUE(std::isnan(x[2]));
}

void whole_numbers_are_exact(Channel& c) {
  std::vector<std::byte> scratch;
  std::vector<int64_t> x(10'000, (int64_t{1} << 54) + c.rank());
  all_reduce(c, DType::kI64, Reduction::kSum, x.data(), 10'000, scratch);
  const int64_t want = (int64_t{1} << 54) * c.size() + c.size() * (c.size() - 1) / 2;
  EXPECT_EQ(x, std::vector<int64_t>(10'000, want));
}

void every_root_broadcasts(Channel& c) {
  for (int root = 0; root < c.size(); ++root)
    for (const int64_t length : {0, 9, 100'000}) {
      std::vector<uint8_t> data(static_cast<size_t>(length),
                                static_cast<uint8_t>(c.rank() == root ? root + 5 : 0));
      broadcast(c, data.data(), length, root);
      EXPECT_EQ(data,
                std::vector<uint8_t>(static_cast<size_t>(length), static_cast<uint8_t>(root + 5)));
    }
}

void nobody_passes_a_barrier_early(Channel& c) {
  // Without a shared clock: what was sent before the barrier must have been received by then.
  for (int round = 0; round < 3; ++round) {
    if (c.rank() == round % c.size()) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    const auto before = std::chrono::steady_clock::now().time_since_epoch().count();
    barrier(c);
    const auto after = std::chrono::steady_clock::now().time_since_epoch().count();
    std::vector<int64_t> bytes(static_cast<size_t>(c.size()), 8);
    std::vector<int64_t> entered(static_cast<size_t>(c.size())), left(entered);
    const int64_t in = before, out = after;
    all_gather(c, &in, bytes, entered.data());
    all_gather(c, &out, bytes, left.data());
    EXPECT_GE(*std::min_element(left.begin(), left.end()),
              *std::max_element(entered.begin(), entered.end()));
  }
}

// By remainder, by halves with the order turned round, alone, and groups of groups; messages of
// different groups do not mix.
void groups_split(Channel& c) {
  const auto sum_of = [](Channel& group, int64_t value) {
    std::vector<std::byte> scratch;
    all_reduce(group, DType::kI64, Reduction::kSum, &value, 1, scratch);
    return value;
  };
  const int n = c.size(), r = c.rank();
  auto odd_even = c.split(r % 2, 0);
  EXPECT_EQ(odd_even->rank(), r / 2);
  EXPECT_EQ(odd_even->size(), (n + 1 - r % 2) / 2);
  auto halves = c.split(r < n / 2, -r);
  const int begin = r < n / 2 ? 0 : n / 2, end = r < n / 2 ? n / 2 : n;
  EXPECT_EQ(halves->size(), end - begin);
  EXPECT_EQ(halves->rank(), end - 1 - r);
  for (int i = 0; i < halves->size(); ++i)
    EXPECT_EQ(halves->world_rank(i), c.world_rank(end - 1 - i));
  int64_t want = 0;
  for (int i = r % 2; i < n; i += 2) want += i;
  EXPECT_EQ(sum_of(*odd_even, r), want);
  want = 0;
  for (int i = begin; i < end; ++i) want += i;
  EXPECT_EQ(sum_of(*halves, r), want);
  auto alone = c.split(r, 0);
  EXPECT_EQ(alone->size(), 1);
  EXPECT_EQ(sum_of(*alone, r), r);
  auto nested = odd_even->split(odd_even->rank() % 2, 0);
  want = 0;
  for (int i = r % 2 + 2 * (r / 2 % 2); i < n; i += 4) want += i;
  EXPECT_EQ(sum_of(*nested, r), want);
}

// Two groups of each rank at work at the same time, from two threads.
void groups_work_side_by_side(Channel& c) {
  auto a = c.split(0, 0), b = c.split(0, -c.rank());
  const auto work = [](Channel& group, int64_t base) {
    std::vector<std::byte> scratch;
    for (int64_t i = 0; i < 30; ++i) {
      int64_t x = base + i + group.rank();
      all_reduce(group, DType::kI64, Reduction::kSum, &x, 1, scratch);
      const int64_t n = group.size();
      ASSERT_EQ(x, n * (base + i) + n * (n - 1) / 2);
    }
  };
  std::thread other([&] { work(*b, 1000); });
  work(*a, 0);
  other.join();
}

constexpr TransportCase kTransportCases[] = {
    {"ExchangeMovesEveryByte", exchange_moves_every_byte},
    {"RingsComeHome", rings_come_home},
    {"RanksMayComeLate", ranks_may_come_late},
    {"GathersUnequalParts", gathers_unequal_parts},
    {"AllToAllIsATranspose", all_to_all_is_a_transpose},
    {"SumsAreInRankOrder", sums_are_in_rank_order},
    {"PartsMayBeEmpty", parts_may_be_empty},
    {"MaximaKeepNan", maxima_keep_nan},
    {"WholeNumbersAreExact", whole_numbers_are_exact},
    {"EveryRootBroadcasts", every_root_broadcasts},
    {"NobodyPassesABarrierEarly", nobody_passes_a_barrier_early},
    {"GroupsSplit", groups_split},
    {"GroupsWorkSideBySide", groups_work_side_by_side},
};

}  // namespace

std::span<const TransportCase> transport_cases() {
  return kTransportCases;
}

}  // namespace rondo::testing

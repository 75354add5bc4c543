// Every copy of every token reaches its expert and comes home, whatever the routing.
#include "parallel/expert_dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "base/random.h"
#include "comm/inproc/inproc.h"

namespace rondo::testing {
namespace {

struct Case {
  const char* label;
  std::vector<int64_t> tokens;  // of each rank
  int64_t experts, k;
  // The j-th choice of token t of rank r; -1: padding. Choices of a token differ.
  int32_t (*choice)(int r, int64_t t, int64_t j, int64_t experts);
  int64_t wave_tokens = 0;
};

int32_t balanced(int r, int64_t t, int64_t j, int64_t experts) {
  return static_cast<int32_t>((r + t + j) % experts);
}
int32_t random_choice(int r, int64_t t, int64_t j, int64_t experts) {
  const uint32_t start =
      philox({4, RandomUse::kTest}, static_cast<uint64_t>(t), static_cast<uint64_t>(r))[0];
  return static_cast<int32_t>((start % static_cast<uint64_t>(experts) + static_cast<uint64_t>(j)) %
                              static_cast<uint64_t>(experts));
}
int32_t first_choice_is_one(int r, int64_t t, int64_t j, int64_t experts) {
  return j == 0 ? 0 : static_cast<int32_t>(1 + (r + t + j) % (experts - 1));
}
// k = 2 experts that live on the last rank.
int32_t all_on_one_rank(int, int64_t, int64_t j, int64_t experts) {
  return static_cast<int32_t>(experts - 1 - j);
}
int32_t rotating_hot(int, int64_t t, int64_t j, int64_t experts) {
  return static_cast<int32_t>((t / 64 + j) % experts);
}
int32_t bursts(int r, int64_t t, int64_t j, int64_t experts) {
  return t / 50 % 2 == 0 ? all_on_one_rank(r, t, j, experts) : balanced(r, t, j, experts);
}
int32_t with_padding(int r, int64_t t, int64_t j, int64_t experts) {
  return t % 3 == 1 ? -1 : balanced(r, t, j, experts);
}

const Case kCases[] = {
    {"balanced", {256, 256}, 4, 2, balanced},
    {"random", {300, 300, 300, 300}, 12, 4, random_choice},
    {"first choice is one expert", {256, 256, 256, 256}, 8, 2, first_choice_is_one},
    {"all on one rank", {200, 200, 200, 200}, 8, 2, all_on_one_rank, 128},
    {"rotating hot expert", {320, 320, 320}, 6, 2, rotating_hot, 128},
    {"bursts", {300, 300}, 6, 2, bursts},
    {"ragged sources", {1, 500, 0, 65}, 6, 2, random_choice},  // 4 does not divide 6
    {"nobody has tokens", {0, 0}, 4, 2, balanced},
    {"padding", {130, 64}, 4, 2, with_padding},
    {"one expert a rank", {10, 20, 30}, 3, 3, balanced},
    {"eight ranks", {70, 70, 70, 70, 70, 70, 70, 70}, 16, 4, random_choice},
};

// What expert e makes of a row: told apart for each expert, choice and row.
float result_of(float x, float more, int64_t expert, float weight, int64_t i) {
  return weight * (x + 2 * more) + static_cast<float>(expert * 10 + i);
}

struct Seen {
  int waves = 0;
  int64_t peak = 0;  // bytes of communication
};

Seen run_case(const Case& test, const std::string& device_name) {
  constexpr int64_t kWidth = 5, kMore = 2;
  Seen seen;
  std::mutex mutex;
  run_ranks(static_cast<int>(test.tokens.size()), [&](std::unique_ptr<Channel> channel) {
    Log log;
    const auto device = make_device(device_name, {});
    const auto world = make_communicator(*device, std::move(channel));
    Context ctx(*device, log, world->rank(), world->size());
    failing_together(*world, [&] {
      const int rank = world->rank();
      const int64_t t = test.tokens[static_cast<size_t>(rank)], k = test.k;
      std::vector<float> x, more, weights;
      std::vector<int32_t> chosen;
      for (int64_t i = 0; i < t; ++i) {
        for (int64_t c = 0; c < kWidth; ++c)
          x.push_back(static_cast<float>(rank * 1000 + i) + 0.1f * static_cast<float>(c));
        for (int64_t c = 0; c < kMore; ++c)
          more.push_back(static_cast<float>(i % 7) + 0.5f * static_cast<float>(c));
        for (int64_t j = 0; j < k; ++j) {
          weights.push_back(0.25f * static_cast<float>(j + 1));
          chosen.push_back(test.choice(rank, i, j, test.experts));
        }
      }
      std::vector<Tensor> keep;
      const auto put = [&](auto& values, DType dtype, int64_t columns) {
        keep.push_back(ctx.allocate(MemoryClass::kInputs, dtype, {t, columns}));
        copy(*ctx.stream, keep.back(), View(values.data(), dtype, Memory::kHost, {t, columns}));
        return keep.back().view();
      };
      const View dx = put(x, DType::kF32, kWidth), dmore = put(more, DType::kF32, kMore);
      const View dweights = put(weights, DType::kF32, k), dchosen = put(chosen, DType::kI32, k);

      ExpertDispatch dispatch(ctx, *world, {test.experts, k, test.wave_tokens});
      dispatch.begin(dchosen);
      const std::unique_ptr<Routing> routing = dispatch.finish();
      const int64_t copies = routing->copies(), first = dispatch.first_expert();
      const Tensor returned = ctx.activation({copies, kWidth});
      int waves = 0;
      dispatch.run(*routing, dx, dmore, dchosen, dweights, returned,
                   [&](const ArrivedWave& wave, const View& out) {
                     EXPECT_EQ(wave.index, waves++);
                     EXPECT_LE(wave.copies, routing->plan().most_copies());
                     ctx.submit("experts", [=](Executor& e) {
                       const View rows = e.translate(wave.x), extra = e.translate(wave.more);
                       const View ids = e.translate(wave.experts), w = e.translate(wave.weights);
                       const View to = e.translate(out);
                       int64_t next = 0;
                       for (int64_t r = 0; r < rows.rows(); ++r)
                         for (int64_t j = 0; j < ids.cols(); ++j) {
                           const int32_t id = ids.as<int32_t>()[r * ids.stride[0] + j];
                           if (id < 0) continue;
                           for (int64_t i = 0; i < rows.cols(); ++i)
                             to.as<float>()[next * to.stride[0] + i] =
                                 result_of(rows.as<float>()[r * rows.stride[0] + i],
                                           extra.as<float>()[r * extra.stride[0] + i % 2],
                                           first + id, w.as<float>()[r * w.stride[0] + j], i);
                           ++next;
                         }
                       RONDO_CHECK(next == wave.copies, "{} copies, not {}", next, wave.copies);
                     });
                   });
      std::vector<float> results(static_cast<size_t>(copies * kWidth));
      std::vector<int32_t> slots(static_cast<size_t>(t * k));
      copy(*ctx.stream, View(results.data(), DType::kF32, Memory::kHost, {copies, kWidth}),
           returned);
      copy(*ctx.stream, View(slots.data(), DType::kI32, Memory::kHost, {t, k}),
           routing->slot_copy());
      ctx.stream->synchronize("test.results");
      std::vector<uint8_t> used(static_cast<size_t>(copies), 0);
      for (int64_t i = 0; i < t; ++i)
        for (int64_t j = 0; j < k; ++j) {
          const size_t slot = static_cast<size_t>(i * k + j);
          ASSERT_EQ(slots[slot] < 0, chosen[slot] < 0);
          if (slots[slot] < 0) continue;
          ASSERT_EQ(used[static_cast<size_t>(slots[slot])]++, 0);
          for (int64_t c = 0; c < kWidth; ++c)
            ASSERT_EQ(results[static_cast<size_t>(slots[slot] * kWidth + c)],
                      result_of(x[static_cast<size_t>(i * kWidth + c)],
                                more[static_cast<size_t>(i * kMore + c % 2)], chosen[slot],
                                weights[slot], c))
                << "token " << i << ", choice " << j;
        }
      EXPECT_EQ(std::count(used.begin(), used.end(), 0), 0);
      const std::lock_guard lock(mutex);
      seen.waves = routing->plan().waves();
      seen.peak = std::max(seen.peak, ctx.ledger.of(MemoryClass::kCommunication).peak);
    });
  });
  return seen;
}

TEST(ExpertDispatch, EveryCopyComesHome) {
  for (const Case& test : kCases)
    for (const char* device : {"cpu", "emu:16MiB"}) {
      SCOPED_TRACE(std::string(test.label) + " on " + device);
      run_case(test, device);
    }
}

TEST(ExpertDispatch, SkewTakesWavesNotMemory) {
  const auto with = [](int32_t (*choice)(int, int64_t, int64_t, int64_t)) {
    return run_case({"", {512, 512, 512, 512}, 8, 2, choice}, "cpu");
  };
  const Seen even = with(balanced), skewed = with(all_on_one_rank);
  EXPECT_EQ(even.waves, 2);
  EXPECT_GE(skewed.waves, 6);
  EXPECT_EQ(even.peak, skewed.peak);
}

}  // namespace
}  // namespace rondo::testing

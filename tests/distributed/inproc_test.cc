#include "comm/inproc/inproc.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "transport_suite.h"

namespace rondo::testing {
namespace {

constexpr int kSizes[] = {1, 2, 3, 4, 7, 8};

class Inproc : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Inproc, ::testing::ValuesIn(kSizes));

TEST_P(Inproc, DoesWhatEveryTransportMust) {
  for (const TransportCase& test : transport_cases()) {
    SCOPED_TRACE(test.name);
    run_ranks(GetParam(), [&](std::unique_ptr<Channel> channel) { test.run(*channel); });
  }
}

TEST_P(Inproc, CommunicatorsOnCpuAndEmu) {
  for (const char* kind : {"cpu", "emu:1MiB"})
    for (const CommunicatorCase& test : communicator_cases()) {
      SCOPED_TRACE(std::string(test.name) + " on " + kind);
      run_ranks(GetParam(), [&](std::unique_ptr<Channel> channel) {
        const std::unique_ptr<Device> device = make_device(kind, {});
        const std::unique_ptr<Communicator> world = make_communicator(*device, std::move(channel));
        failing_together(*world, [&] { test.run(*device, *world); });
      });
    }
}

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(InprocFailure, TheFirstCauseStopsEveryRankAndKeepsItsType) {
  std::atomic<int> told{0};
  const double seconds = seconds_of([&] {
    try {
      run_ranks(4, [&](std::unique_ptr<Channel> c) {
        if (c->rank() == 2) fail_input("sources.toml: no such file");
        try {
          int x = 0;
          const Message from{2, &x, sizeof x};
          c->exchange({"test", "", false}, {}, {&from, 1});
        } catch (const RankFailure& failure) {
          EXPECT_EQ(failure.rank(), 2);
          EXPECT_STREQ(failure.what(), "sources.toml: no such file");
          ++told;
          throw;
        }
      });
      FAIL() << "nobody threw";
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), "sources.toml: no such file");
    }
  });
  EXPECT_EQ(told, 3);
  EXPECT_LT(seconds, 5);
}

TEST(InprocFailure, ABrokenInvariantNamesItsRank) {
  try {
    run_ranks(3, [&](std::unique_ptr<Channel> c) {
      if (c->rank() == 1) throw std::logic_error("no such expert");
      int x = 0;
      const Message from{1, &x, sizeof x};
      c->exchange({"test", "", false}, {}, {&from, 1});
    });
    FAIL() << "nobody threw";
  } catch (const RankFailure& failure) {
    EXPECT_EQ(failure.rank(), 1);
    EXPECT_STREQ(failure.what(), "rank 1: no such expert");
  }
}

TEST(InprocFailure, SizesThatDisagreeNameBothCalls) {
  try {
    run_ranks(2, [&](std::unique_ptr<Channel> c) {
      char data[8] = {};
      const Message message{1 - c->rank(), data, c->rank() == 0 ? 8 : 4};
      const std::span<const Message> one(&message, 1);
      if (c->rank() == 0)
        c->exchange({"all_gather", "", true}, one, {});
      else
        c->exchange({"broadcast", "", true}, {}, one);
    });
    FAIL() << "nobody threw";
  } catch (const RankFailure& failure) {
    EXPECT_NE(std::string(failure.what())
                  .find("rank 1 waits in broadcast for 4 bytes, rank 0 sends 8 in all_gather"),
              std::string::npos)
        << failure.what();
  }
}

TEST(InprocFailure, NobodyWaitsForARankThatHasEnded) {
  for (const bool send : {false, true}) try {
      run_ranks(2, [&](std::unique_ptr<Channel> c) {
        if (c->rank() == 1) return;
        char x = 0;
        const Message message{1, &x, 1};
        const std::span<const Message> one(&message, 1), none;
        c->exchange({"broadcast", "", true}, send ? one : none, send ? none : one);
      });
      FAIL() << "nobody threw";
    } catch (const RankFailure& failure) {
      EXPECT_NE(std::string(failure.what()).find("waits in broadcast for rank 1, which has ended"),
                std::string::npos)
          << failure.what();
    }
}

// A rank that fails while its own messages are on the way takes them back.
TEST(InprocFailure, ReachesKernelsThatWaitForATransfer) {
  for (const char* kind : {"cpu", "emu:1MiB"}) {
    SCOPED_TRACE(kind);
    EXPECT_THROW(
        run_ranks(
            3,
            [&](std::unique_ptr<Channel> channel) {
              const auto device = make_device(kind, {});
              const auto world = make_communicator(*device, std::move(channel));
              const auto stream = device->make_stream("compute");
              failing_together(*world, [&] {
                float x = 1;
                const View view(&x, DType::kF32, Memory::kHost, {1});
                if (world->rank() == 1) throw std::runtime_error("gone");
                world->all_reduce(*stream, view, Reduction::kSum).wait(*stream, "test.reduced");
                stream->synchronize("test.end");
              });
            }),
        RankFailure);
  }
}

TEST(InprocFailure, AStuckRankIsReportedWithTheFirstCause) {
  std::atomic<bool> let_go{false};
  std::string reported;
  EXPECT_THROW(run_ranks(2,
                         [&](std::unique_ptr<Channel> c) {
                           if (c->rank() == 0) throw std::runtime_error("boom");
                           while (!let_go)
                             std::this_thread::sleep_for(std::chrono::milliseconds(1));
                         },
                         {.grace_seconds = 0.05,
                          .stuck =
                              [&](const std::string& cause) {
                                reported = cause;
                                let_go = true;
                              }}),
               RankFailure);
  EXPECT_EQ(reported, "rank 0: boom");
}

}  // namespace
}  // namespace rondo::testing

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/thread_pool.h"

namespace rondo {
namespace {

TEST(ThreadPool, EveryTaskRunsOnceAtAnyThreadCount) {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    for (int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(tasks);
      pool.run(tasks, [&](int64_t task, int worker) {
        ASSERT_LT(worker, threads);
        ++seen[task];
      });
      for (auto& count : seen) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, AnExceptionReachesTheCallerAndThePoolGoesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.run(100,
                        [](int64_t task, int) {
                          if (task == 50) throw InputError("fifty");
                        }),
               InputError);
  std::atomic<int> count{0};
  pool.run(10, [&](int64_t, int) { ++count; });
  EXPECT_EQ(count, 10);
}

// The known answer of Philox4x32-10 for a zero key and counter (Random123's kat_vectors), with the
// use in the last counter word.
TEST(Random, PhiloxKnownAnswer) {
  const auto words = philox({0, RandomUse{0}}, 0, 0);
  EXPECT_EQ(words[0], 0x6627e8d5u);
  EXPECT_EQ(words[1], 0xe169c58du);
  EXPECT_EQ(words[2], 0xbc57ac4cu);
  EXPECT_EQ(words[3], 0x9b00dbd8u);
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  double sum = 0, squares = 0;
  constexpr int kPairs = 20000;
  for (int i = 0; i < kPairs; ++i)
    for (double x : normal(philox({7, RandomUse::kTest}, i, 0))) {
      sum += x;
      squares += x * x;
    }
  EXPECT_NEAR(sum / (2 * kPairs), 0, 0.02);
  EXPECT_NEAR(squares / (2 * kPairs), 1, 0.03);
}

TEST(File, AtomicWriteReplacesAndLeavesNoTemporary) {
  const fs::path folder = fs::path(testing::TempDir()) / "rondo_file_test";
  fs::create_directories(folder);
  write_file_atomic(folder / "a", "one");
  write_file_atomic(folder / "a", "two");
  EXPECT_EQ(read_file(folder / "a"), "two");
  EXPECT_FALSE(fs::exists(folder / "a.tmp"));
  MappedFile mapped(folder / "a");
  EXPECT_EQ(mapped.bytes().size(), 3u);
  write_file_atomic(folder / "empty", "");
  EXPECT_EQ(MappedFile(folder / "empty").bytes().size(), 0u);
  fs::remove_all(folder);
}

TEST(File, FullDiskLeavesTheOldFile) {
  EXPECT_THROW(
      {
        FileWriter writer("/dev/full");
        writer.write(std::string(1 << 21, 'x'));
        writer.close();
      },
      InputError);
}

TEST(File, AMissingFileIsNamed) {
  try {
    read_file("/nonexistent/x");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "/nonexistent/x: cannot open: No such file or directory");
  }
}

TEST(File, ALockIsHeldOnce) {
  const fs::path path = fs::path(testing::TempDir()) / "rondo.lock";
  {
    FileLock lock(path);
    EXPECT_THROW(FileLock again(path), InputError);
  }
  FileLock lock(path);
  fs::remove(path);
}

TEST(Hash, Known) {
  EXPECT_EQ(hex64(hash64(std::string_view(""))), "2d06800538d394c2");
}

}  // namespace
}  // namespace rondo

#include "device/device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>
#include <vector>

#include "device/context.h"
#include "device/size.h"

namespace rondo {
namespace {

class OnDevice : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Device> device_ = make_device(GetParam(), {.threads = 2});
  Log log_;
};

INSTANTIATE_TEST_SUITE_P(Device, OnDevice, testing::Values("cpu", "emu:4MiB"),
                         [](const auto& info) { return info.index == 0 ? "cpu" : "emu"; });

View host_view(std::vector<float>& v) {
  return View(v.data(), DType::kF32, Memory::kHost, {static_cast<int64_t>(v.size())});
}

TEST_P(OnDevice, WorkRunsInOrderOnCopiedData) {
  Context ctx(*device_, log_);
  std::vector<float> in = {1, 2, 3}, out(3);
  const Tensor x = ctx.activation({3});
  copy(*ctx.stream, x, host_view(in));
  for (int i = 0; i < 10; ++i)
    ctx.submit("double", [view = x.view()](Executor& executor) {
      float* p = executor.translate(view).as<float>();
      for (int j = 0; j < 3; ++j) p[j] *= 2;
    });
  copy(*ctx.stream, host_view(out), x);
  ctx.stream->synchronize("test.out");
  EXPECT_EQ(out, (std::vector<float>{1024, 2048, 3072}));
}

// A transfer that waits for somebody else must not stop the kernels, nor the host.
TEST_P(OnDevice, TransfersGoOnBesideKernels) {
  Context ctx(*device_, log_);
  auto transfers = device_->make_transfer_stream("transfers");
  std::promise<void> kernel_ran;
  Event ready, done;
  ctx.stream->record(ready);
  transfers->wait(ready, "test.ready");
  std::atomic<int> value{0};
  transfers->submit("blocked", [&](Executor& executor) {
    EXPECT_EQ(executor.pool().threads(), 1);
    kernel_ran.get_future().wait();
    value = 3;
  });
  transfers->record(done);
  ctx.submit("kernel", [&](Executor&) { kernel_ran.set_value(); });
  std::atomic<int> seen{-1};
  ctx.stream->wait(done, "test.done");
  ctx.submit("read", [&](Executor&) { seen = value.load(); });
  ctx.stream->synchronize("test.end");
  EXPECT_EQ(seen, 3);
}

// From the next call, where it has failed by then, or from waiting.
TEST_P(OnDevice, AFailedTransferReachesWhoWaitsForIt) {
  auto transfers = device_->make_transfer_stream("transfers");
  std::promise<void> recorded;
  Event done;
  transfers->submit("fails", [&](Executor&) {
    recorded.get_future().wait();
    throw InputError("peer 3 is gone");
  });
  transfers->record(done);
  recorded.set_value();
  EXPECT_THROW(done.wait_host("test.done"), InputError);
  EXPECT_THROW(transfers->record(done), InputError);
}

TEST_P(OnDevice, StreamsWaitForEvents) {
  auto a = device_->make_stream("a");
  auto b = device_->make_stream("b");
  std::atomic<int> value{0}, seen{-1};
  Event ready;
  a->submit("slow", [&](Executor&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    value = 7;
  });
  a->record(ready);
  b->wait(ready, "test.b");
  b->submit("read", [&](Executor&) { seen = value.load(); });
  b->synchronize("test.end");
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(device_->wait_sites(), (std::vector<std::string>{"test.b", "test.end"}));
}

TEST_P(OnDevice, TheArenaTakesNothingNewForWhatRepeats) {
  Context ctx(*device_, log_);
  int64_t reservations = 0;
  for (int step = 0; step < 4; ++step) {
    const Tensor a = ctx.activation({100, 7});
    const Tensor b = ctx.allocate(MemoryClass::kWorkspace, DType::kI32, {300});
    const Tensor empty = ctx.activation({0, 5});
    EXPECT_EQ(ctx.ledger.of(MemoryClass::kActivations).current, 2800);
    if (step == 0) reservations = ctx.ledger.reservations();
  }
  EXPECT_EQ(ctx.ledger.reservations(), reservations);
  EXPECT_EQ(ctx.ledger.of(MemoryClass::kActivations).current, 0);
  EXPECT_EQ(ctx.ledger.of(MemoryClass::kWorkspace).peak, 1200);
}

TEST_P(OnDevice, AFailedTaskReachesTheHost) {
  auto stream = device_->make_stream("s");
  EXPECT_THROW(
      {
        stream->submit("bad", [](Executor&) { throw InvariantError("bad task"); });
        stream->synchronize("test");
      },
      InvariantError);
}

TEST(Emu, HostCodeThatTouchesDeviceMemoryFaultsAtOnce) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        auto device = make_device("emu:1MiB", {});
        auto* data = static_cast<volatile float*>(device->allocate(64));
        data[0] = 1;
      },
      "");
}

TEST(Emu, MemoryIsNaNEachTimeItIsHandedOut) {
  auto device = make_device("emu:1MiB", {});
  Log log;
  Context ctx(*device, log);
  for (int round = 0; round < 2; ++round) {
    std::vector<float> out(16, 0.0f);
    const Tensor x = ctx.activation({16});
    copy(*ctx.stream, host_view(out), x);
    ctx.stream->synchronize("test");
    for (float v : out) EXPECT_TRUE(std::isnan(v));
    ctx.submit("zero", [view = x.view()](Executor& e) {
      std::fill_n(e.translate(view).as<float>(), 16, 0.0f);
    });
  }
}

TEST(Emu, ADroppedWaitReadsTooEarly) {
  for (bool drop : {false, true}) {
    auto device =
        make_device("emu:1MiB", {.drop_wait = drop ? "test.read" : "", .delay_us = 30000});
    Log log;
    std::vector<float> in = {5}, out = {0};
    Context ctx(*device, log);
    const Tensor x = ctx.activation({1});
    copy(*ctx.stream, x, host_view(in));
    copy(*ctx.stream, host_view(out), x);
    ctx.stream->synchronize("test.read");
    EXPECT_EQ(out[0], drop ? 0.0f : 5.0f);
    ctx.stream->synchronize("test.end");
  }
}

TEST(Emu, AFullDeviceSaysSo) {
  auto device = make_device("emu:1MiB", {});
  device->allocate(900000);
  try {
    device->allocate(200000);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("no room for 195.5 KiB"), std::string::npos)
        << error.what();
  }
}

TEST(Emu, AViewPastTheEndIsRefused) {
  auto device = make_device("emu:1MiB", {});
  void* data = device->allocate(1 << 20);
  auto stream = device->make_stream("s");
  const View view(data, DType::kF32, Memory::kDevice, {(1 << 18) + 1});
  stream->submit("bad", [view](Executor& e) { e.translate(view); });
  EXPECT_THROW(stream->synchronize("test"), InvariantError);
}

TEST(Device, UnknownOnesAreRefused) {
  EXPECT_THROW(make_device("gpu", {}), InputError);
  EXPECT_THROW(make_device("emu:lots", {}), InputError);
  EXPECT_THROW(make_device("cuda", {}), InputError);
}

TEST(Size, ParsesUnits) {
  EXPECT_EQ(parse_size("64MiB"), 64 << 20);
  EXPECT_EQ(parse_size("1.5KiB"), 1536);
  EXPECT_EQ(parse_size("100"), 100);
  EXPECT_EQ(parse_size("-1"), std::nullopt);
  EXPECT_EQ(parse_size("1XB"), std::nullopt);
  EXPECT_EQ(format_size(1536), "1.5 KiB");
}

}  // namespace
}  // namespace rondo

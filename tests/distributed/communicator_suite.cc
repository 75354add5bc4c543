#include <gtest/gtest.h>

#include <cstring>

#include "device/context.h"
#include "transport_suite.h"

namespace rondo::testing {
namespace {

// A rank's context on its device, with data that goes there and comes back.
class Rank {
 public:
  Rank(Device& device, Communicator& world) : ctx(device, log_, world.rank(), world.size()) {}

  Tensor put(const std::vector<float>& values) {
    Tensor t = ctx.allocate(MemoryClass::kCommunication, DType::kF32,
                            {static_cast<int64_t>(values.size())});
    const View host(const_cast<float*>(values.data()), DType::kF32, Memory::kHost,
                    {static_cast<int64_t>(values.size())});
    copy(*ctx.stream, t, host);
    ctx.stream->synchronize("test.put");
    return t;
  }
  std::vector<float> get(const Tensor& t) {
    std::vector<float> out(static_cast<size_t>(t.view().elements()));
    copy(*ctx.stream,
         View(out.data(), DType::kF32, Memory::kHost, {static_cast<int64_t>(out.size())}), t);
    ctx.stream->synchronize("test.get");
    return out;
  }
  // Adds `value` to every element: work of the compute stream that a call must wait for.
  void add(const Tensor& t, float value) {
    ctx.submit("add", [view = t.view(), value](Executor& executor) {
      const View v = executor.translate(view);
      for (int64_t i = 0; i < v.elements(); ++i) v.as<float>()[i] += value;
    });
  }

 private:
  Log log_;

 public:
  Context ctx;
};

// Kernel, collective, kernel: each starts when the one before it is done, and the host never waits.
void calls_are_stream_ordered(Device& device, Communicator& world) {
  Rank rank(device, world);
  const float n = static_cast<float>(world.size()), r = static_cast<float>(world.rank());
  const Tensor x = rank.put({r, 1});
  for (int i = 0; i < 5; ++i) {
    rank.add(x, 1);
    world.all_reduce(*rank.ctx.stream, x, Reduction::kSum).wait(*rank.ctx.stream, "test.reduced");
  }
  float a = 0, b = 1;
  a = n * (n - 1) / 2 + n;
  b = 2 * n;
  for (int i = 1; i < 5; ++i) {
    a = (a + 1) * n;
    b = (b + 1) * n;
  }
  EXPECT_EQ(rank.get(x), (std::vector<float>{a, b}));
}

void gathers_and_scatters(Device& device, Communicator& world) {
  Rank rank(device, world);
  const int n = world.size(), r = world.rank();
  std::vector<int64_t> counts;
  std::vector<float> want, all;
  for (int i = 0; i < n; ++i) {
    counts.push_back(i % 2 + 1);
    for (int j = 0; j < counts.back(); ++j) want.push_back(static_cast<float>(10 * i + j));
  }
  std::vector<float> mine;
  for (int j = 0; j < counts[static_cast<size_t>(r)]; ++j)
    mine.push_back(static_cast<float>(10 * r + j));
  const Tensor in = rank.put(mine), out = rank.put(std::vector<float>(want.size(), -1));
  const Tensor part = rank.put(std::vector<float>(mine.size(), -1));
  world.all_gather(*rank.ctx.stream, in, out, counts).wait(*rank.ctx.stream, "test.gathered");
  world.reduce_scatter(*rank.ctx.stream, out, part, counts)
      .wait(*rank.ctx.stream, "test.scattered");
  EXPECT_EQ(rank.get(out), want);
  for (float& x : mine) x *= static_cast<float>(n);
  EXPECT_EQ(rank.get(part), mine);
}

// A ring hop while the next one is prepared, and an all-to-all with rows for some alone.
void exchanges_and_all_to_all(Device& device, Communicator& world) {
  Rank rank(device, world);
  const int n = world.size(), r = world.rank();
  const int right = (r + 1) % n, left = (r + n - 1) % n;
  const Tensor mine = rank.put({static_cast<float>(r), 5}), got = rank.put({-1, -1});
  world.exchange(*rank.ctx.stream, {{right, mine}}, {{left, got}})
      .wait(*rank.ctx.stream, "test.hop");
  EXPECT_EQ(rank.get(got), (std::vector<float>{static_cast<float>(left), 5}));

  std::vector<int64_t> send(static_cast<size_t>(n), 0), receive(static_cast<size_t>(n), 0);
  send[static_cast<size_t>(right)] += 2;
  receive[static_cast<size_t>(left)] += 2;
  const Tensor out = rank.put({-1, -1});
  world.all_to_all(*rank.ctx.stream, mine, send, out, receive)
      .wait(*rank.ctx.stream, "test.all_to_all");
  EXPECT_EQ(rank.get(out), (std::vector<float>{static_cast<float>(left), 5}));
}

void counts_what_it_sends(Device& device, Communicator& world) {
  Rank rank(device, world);
  const int64_t before = world.bytes_sent();
  const Tensor x = rank.put(std::vector<float>(12, 1));
  auto group = world.split(0, 0);
  group->broadcast(*rank.ctx.stream, x, 0).wait(*rank.ctx.stream, "test.broadcast");
  EXPECT_EQ(world.bytes_sent() - before, world.rank() == 0 ? 48 * (world.size() - 1) : 0);
  world.barrier();
}

void splits_work_side_by_side(Device& device, Communicator& world) {
  Rank rank(device, world);
  auto rows = world.split(world.rank() / 2, 0), columns = world.split(world.rank() % 2, 0);
  const Tensor a = rank.put({1}), b = rank.put({1});
  // Opposite orders on neighbours would dead-lock if the two shared a thread.
  Work first, second;
  if (world.rank() % 2 == 0) {
    first = rows->all_reduce(*rank.ctx.stream, a, Reduction::kSum);
    second = columns->all_reduce(*rank.ctx.stream, b, Reduction::kSum);
  } else {
    second = columns->all_reduce(*rank.ctx.stream, b, Reduction::kSum);
    first = rows->all_reduce(*rank.ctx.stream, a, Reduction::kSum);
  }
  first.wait(*rank.ctx.stream, "test.first");
  second.wait(*rank.ctx.stream, "test.second");
  EXPECT_EQ(rank.get(a).front(), static_cast<float>(rows->size()));
  EXPECT_EQ(rank.get(b).front(), static_cast<float>(columns->size()));
}

constexpr CommunicatorCase kCommunicatorCases[] = {
    {"CallsAreStreamOrdered", calls_are_stream_ordered},
    {"GathersAndScatters", gathers_and_scatters},
    {"ExchangesAndAllToAll", exchanges_and_all_to_all},
    {"CountsWhatItSends", counts_what_it_sends},
    {"SplitsWorkSideBySide", splits_work_side_by_side},
};

}  // namespace

std::span<const CommunicatorCase> communicator_cases() {
  return kCommunicatorCases;
}

}  // namespace rondo::testing

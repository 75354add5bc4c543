// P ranks with any share of the tokens equal one rank in double.
#include "parallel/ring_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <numeric>

#include "comm/inproc/inproc.h"

namespace rondo::testing {
namespace {

using Numbers = std::vector<double>;

// One sequence of packed documents with all inputs and, in double, all outputs.
struct Whole {
  RingShape shape;
  std::vector<Place> places;
  Numbers q, k, v, d_o, o, lse, dq, dk, dv;

  int64_t tokens() const { return static_cast<int64_t>(places.size()); }
};

// Negative lengths: padding.
std::vector<Place> packed(const std::vector<int>& lengths) {
  std::vector<Place> out;
  int32_t doc = 0;
  for (const int length : lengths) {
    for (int i = 0; i < std::abs(length); ++i)
      out.push_back(
          {0, static_cast<int32_t>(out.size()), length < 0 ? -1 : doc, length < 0 ? 0 : i});
    doc += length > 0;
  }
  return out;
}

template <class Args>
void reference(const Args& args) {
  args.check();
  ThreadPool pool(1);
  KernelEnv env{pool, {}};
  implementations<Args>().back().run(args, env);
}

Numbers random_numbers(int64_t n, uint64_t stream) {
  Numbers out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    out[static_cast<size_t>(i)] =
        2 * uniform01(philox({stream, RandomUse::kTest}, static_cast<uint64_t>(i), 0)[0]) - 1;
  return out;
}

Whole make_whole(const std::vector<int>& lengths, const RingShape& shape) {
  Whole w{shape, packed(lengths), {}, {}, {}, {}, {}, {}, {}, {}, {}};
  const int64_t t = w.tokens(), h = shape.heads, kh = shape.key_heads;
  w.q = random_numbers(t * h * shape.dqk, 1);
  w.k = random_numbers(t * kh * shape.dqk, 2);
  w.v = random_numbers(t * kh * shape.dv, 3);
  w.d_o = random_numbers(t * h * shape.dv, 4);
  const auto view = [](Numbers& x, std::initializer_list<int64_t> dims) {
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    x.resize(static_cast<size_t>(n));
    return View(x.data(), DType::kF64, Memory::kHost, dims);
  };
  Numbers m, l, delta;
  const View places(w.places.data(), DType::kI32, Memory::kHost, {t, 4});
  const AttentionBlockArgs block{.q = view(w.q, {t, h, shape.dqk}),
                                 .k = view(w.k, {t, kh, shape.dqk}),
                                 .v = view(w.v, {t, kh, shape.dv}),
                                 .q_places = places,
                                 .k_places = places,
                                 .m = view(m, {t, h}),
                                 .l = view(l, {t, h}),
                                 .a = view(w.o, {t, h, shape.dv}),
                                 .first = true,
                                 .scale = shape.scale,
                                 .window = shape.window,
                                 .dropout = shape.dropout};
  reference(block);
  reference(AttentionFinishArgs{block.m, block.l, block.a, block.a, view(w.lse, {t, h})});
  reference(AttentionDeltaArgs{block.a, view(w.d_o, {t, h, shape.dv}), view(delta, {t, h})});
  reference(AttentionBackwardArgs{.q = block.q,
                                  .k = block.k,
                                  .v = block.v,
                                  .q_places = places,
                                  .k_places = places,
                                  .lse = view(w.lse, {t, h}),
                                  .delta = view(delta, {t, h}),
                                  .d_o = view(w.d_o, {t, h, shape.dv}),
                                  .dq = view(w.dq, {t, h, shape.dqk}),
                                  .dk = view(w.dk, {t, kh, shape.dqk}),
                                  .dv = view(w.dv, {t, kh, shape.dv}),
                                  .scale = shape.scale,
                                  .window = shape.window,
                                  .dropout = shape.dropout});
  return w;
}

// Which tokens each rank holds.
using Layout = std::vector<std::vector<int64_t>>;

Layout contiguous(int64_t tokens, int ranks) {
  Layout out(static_cast<size_t>(ranks));
  for (int64_t t = 0; t < tokens; ++t) out[static_cast<size_t>(t * ranks / tokens)].push_back(t);
  return out;
}
Layout striped(int64_t tokens, int ranks) {
  Layout out(static_cast<size_t>(ranks));
  for (int64_t t = 0; t < tokens; ++t) out[static_cast<size_t>(t % ranks)].push_back(t);
  return out;
}
Layout zigzag(int64_t tokens, int ranks) {
  Layout out(static_cast<size_t>(ranks));
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t chunk = t * 2 * ranks / tokens;
    out[static_cast<size_t>(chunk < ranks ? chunk : 2 * ranks - 1 - chunk)].push_back(t);
  }
  return out;
}
// Any rank may hold any token, in any order; the last rank holds none.
Layout scattered(int64_t tokens, int ranks) {
  Layout out(static_cast<size_t>(ranks));
  const int64_t holders = std::max(1, ranks - 1);
  for (int64_t t = tokens - 1; t >= 0; --t)
    out[philox({9, RandomUse::kTest}, static_cast<uint64_t>(t), 0)[0] %
        static_cast<uint64_t>(holders)]
        .push_back(t);
  return out;
}

double error_of(const Numbers& got, const Numbers& want) {
  double most = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i]) || std::isnan(got[i])) {
      if (got[i] != want[i]) return INFINITY;
      continue;
    }
    most = std::max(most, std::abs(got[i] - want[i]));
    size = std::max(size, std::abs(want[i]));
  }
  return size > 0 ? most / size : most;
}

// Runs forward and backward on as many ranks as the layout has.
struct Outputs {
  Numbers o, lse, dq, dk, dv;
};
Outputs run_ring(const Whole& w, const Layout& layout, const std::string& device_name = "cpu") {
  const RingShape& s = w.shape;
  const int ranks = static_cast<int>(layout.size());
  Outputs out{Numbers(w.o.size()), Numbers(w.lse.size()), Numbers(w.dq.size()),
              Numbers(w.dk.size()), Numbers(w.dv.size())};
  std::vector<std::vector<Place>> places(layout.size());
  for (size_t r = 0; r < layout.size(); ++r)
    for (const int64_t t : layout[r]) places[r].push_back(w.places[static_cast<size_t>(t)]);
  const RingPlan plan(places, s.window);
  run_ranks(ranks, [&](std::unique_ptr<Channel> channel) {
    Log log;
    const auto device = make_device(device_name, {});
    const auto world = make_communicator(*device, std::move(channel));
    Context ctx(*device, log, world->rank(), world->size());
    failing_together(*world, [&] {
      const std::vector<int64_t>& mine = layout[static_cast<size_t>(world->rank())];
      std::vector<Place>& at = places[static_cast<size_t>(world->rank())];
      const int64_t t = static_cast<int64_t>(mine.size());
      const auto make = [&](int64_t heads, int64_t d) { return ctx.activation({t, heads, d}); };
      const auto put = [&](const Numbers& from, int64_t heads, int64_t d) {
        Tensor x = make(heads, d);
        std::vector<float> rows;
        for (const int64_t token : mine)
          for (int64_t i = 0; i < heads * d; ++i)
            rows.push_back(static_cast<float>(from[static_cast<size_t>(token * heads * d + i)]));
        copy(*ctx.stream, x, View(rows.data(), DType::kF32, Memory::kHost, {t, heads, d}));
        ctx.stream->synchronize("test.put");
        return x;
      };
      const auto get = [&](const Tensor& x, Numbers& to) {
        const int64_t width = x.view().elements() / std::max<int64_t>(t, 1);
        std::vector<float> rows(static_cast<size_t>(t * width));
        View host = x.view();
        host.data = rows.data();
        host.memory = Memory::kHost;
        copy(*ctx.stream, host, x);
        ctx.stream->synchronize("test.get");
        for (int64_t r = 0; r < t; ++r)
          for (int64_t i = 0; i < width; ++i)
            to[static_cast<size_t>(mine[static_cast<size_t>(r)] * width + i)] =
                rows[static_cast<size_t>(r * width + i)];
      };
      const Tensor q = put(w.q, s.heads, s.dqk), k = put(w.k, s.key_heads, s.dqk);
      const Tensor v = put(w.v, s.key_heads, s.dv), d_o = put(w.d_o, s.heads, s.dv);
      const Tensor o = make(s.heads, s.dv), lse = ctx.activation({t, s.heads});
      const Tensor dq = make(s.heads, s.dqk), dk = make(s.key_heads, s.dqk);
      const Tensor dv = make(s.key_heads, s.dv);
      const Tensor rows = ctx.allocate(MemoryClass::kInputs, DType::kI32, {t, 4});
      copy(*ctx.stream, rows, View(at.data(), DType::kI32, Memory::kHost, {t, 4}));
      ring_attention_forward(ctx, world.get(), plan, s, q, k, v, rows, o, lse);
      ring_attention_backward(ctx, world.get(), plan, s, q, k, v, rows, o, lse, d_o, dq, dk, dv);
      get(o, out.o);
      get(lse, out.lse);
      get(dq, out.dq);
      get(dk, out.dk);
      get(dv, out.dv);
    });
  });
  return out;
}

void expect_whole(const Whole& w, const Layout& layout, const std::string& device = "cpu") {
  const Outputs run = run_ring(w, layout, device);
  EXPECT_LE(error_of(run.o, w.o), 2e-6);
  EXPECT_LE(error_of(run.lse, w.lse), 2e-6);
  EXPECT_LE(error_of(run.dq, w.dq), 5e-6);
  EXPECT_LE(error_of(run.dk, w.dk), 5e-6);
  EXPECT_LE(error_of(run.dv, w.dv), 5e-6);
}

struct Sequence {
  const char* label;
  std::vector<int> lengths;
  RingShape shape;
};
const Sequence kSequences[] = {
    {"fewer tokens than ranks", {3}, {1, 1, 4, 4, 0.5f}},
    {"four tokens", {4}, {1, 1, 4, 4, 0.5f}},
    {"grouped queries, packed, padding", {70, 1, 33, -5, 90, 17}, {4, 2, 12, 8, 0.4f}},
    {"one-token documents", std::vector<int>(16, 1), {2, 2, 4, 6, 1}},
    {"window", {300}, {2, 1, 8, 8, 0.5f, 128}},
    {"dropout", {50, 40}, {2, 2, 8, 8, 0.5f, 0, {0.25f, 3}}},
    {"window and dropout", {130, -2}, {2, 1, 6, 5, 0.5f, 30, {0.25f, 3}}},
    {"a prime", {2999}, {1, 1, 8, 8, 0.4f}},
};

TEST(RingAttention, AnyLayoutEqualsOneRank) {
  for (const Sequence& s : kSequences) {
    const Whole w = make_whole(s.lengths, s.shape);
    for (const int ranks : {1, 2, 3, 4, 8}) {
      if (w.tokens() > 2000 && ranks != 4) continue;
      for (const auto& layout : {contiguous, striped, zigzag, scattered}) {
        SCOPED_TRACE(std::string(s.label) + " on " + std::to_string(ranks));
        expect_whole(w, layout(w.tokens(), ranks));
      }
    }
  }
}

TEST(RingAttention, OnEmulatedDevices) {
  const Whole w = make_whole({70, 1, 33, -5, 90, 17}, {4, 2, 12, 8, 0.4f});
  for (const auto& layout : {contiguous, scattered})
    expect_whole(w, layout(w.tokens(), 4), "emu:8MiB");
}

TEST(RingAttention, SameBitsEveryTime) {
  const Whole w = make_whole({150, 60}, {2, 1, 16, 8, 0.4f});
  const Outputs a = run_ring(w, zigzag(w.tokens(), 4)), b = run_ring(w, zigzag(w.tokens(), 4));
  EXPECT_EQ(a.o, b.o);
  EXPECT_EQ(a.dq, b.dq);
  EXPECT_EQ(a.dk, b.dk);
  EXPECT_EQ(a.dv, b.dv);
}

// The state is not divided between hops, so error does not grow with their number.
TEST(RingAttention, ErrorDoesNotGrowWithRanks) {
  const Whole w = make_whole({512}, {2, 2, 32, 32, 0.18f});
  double alone = 0;
  for (const int ranks : {1, 2, 4, 8, 16}) {
    const double error = error_of(run_ring(w, zigzag(w.tokens(), ranks)).o, w.o);
    if (ranks == 1) alone = error;
    EXPECT_LE(error, 1.5 * alone) << ranks << " ranks";
    EXPECT_LE(error, 2e-6) << ranks << " ranks";
  }
}

TEST(RingPlan, HopsThatNobodyNeedsAreLeftOut) {
  const auto plan_of = [](const std::vector<int>& lengths, const Layout& layout, int64_t window) {
    const std::vector<Place> all = packed(lengths);
    std::vector<std::vector<Place>> places(layout.size());
    for (size_t r = 0; r < layout.size(); ++r)
      for (const int64_t t : layout[r]) places[r].push_back(all[static_cast<size_t>(t)]);
    return RingPlan(places, window);
  };
  // Whole documents on each rank: nothing travels.
  EXPECT_EQ(plan_of({8, 8, 8, 8}, contiguous(32, 4), 0).hops(), 0);
  // A window of one shard: a neighbour's block at most.
  EXPECT_EQ(plan_of({32}, contiguous(32, 4), 8).hops(), 1);
  EXPECT_EQ(plan_of({32}, contiguous(32, 4), 9).hops(), 1);
  EXPECT_EQ(plan_of({32}, contiguous(32, 4), 10).hops(), 2);
  EXPECT_EQ(plan_of({32}, contiguous(32, 4), 0).hops(), 3);
  const RingPlan causal = plan_of({32}, contiguous(32, 4), 0);
  EXPECT_TRUE(causal.needs(3, 0));
  EXPECT_FALSE(causal.needs(0, 3));
}

}  // namespace
}  // namespace rondo::testing

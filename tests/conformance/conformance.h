// Every implementation of every operation against the reference in double.
//
//   TEST(RmsNorm, Forward) {
//     conform<RmsNormArgs>("odd width", [](Buffers& b) {
//       RmsNormArgs a;
//       a.x = b.random({5, 7});
//       ...
//       a.y = b.output({5, 7});
//       return a;
//     });
//   }
//
// The builder is called anew for each run, once with f64 buffers for the reference and then with
// f32 ones; random values are the same (rounded to f32 in both). For each implementation that takes
// the arguments, each instruction set that was built and runs here, and 1 to 4 threads, conform()
// checks: outputs within Args::kTolerance of the reference, identical bits at every thread count,
// no byte touched outside the views or in an input, every element of an output written (they begin
// as NaN), and that the forced implementation and instruction set are what ran. Then the whole goes
// through launch() on an emulated device: same bits.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "kernels/op.h"

namespace rondo::testing {

// Host memory for one run, with NaN around every view.
class Buffers {
 public:
  explicit Buffers(DType floating, uint64_t seed = 1) : floating_(floating), seed_(seed) {}
  Buffers(const Buffers&) = delete;

  // `gap` more elements stand between rows (of all dimensions but the last, as one).
  View random(std::initializer_list<int64_t> shape, double low = -1, double high = 1,
              int64_t gap = 0);
  View values(std::initializer_list<int64_t> shape, const std::vector<double>& values);
  View output(std::initializer_list<int64_t> shape, int64_t gap = 0);  // begins as NaN
  View ints(std::initializer_list<int64_t> shape, const std::vector<int32_t>& values);
  View int_output(DType dtype, std::initializer_list<int64_t> shape);  // begins as garbage
  View f64(std::initializer_list<int64_t> shape, const std::vector<double>& values);
  // i32 [n, 4]: one sample, documents of these lengths one after another; -1 in the list: one token
  // of padding.
  View places(const std::vector<int>& lengths);
  DType floating() const { return floating_; }
  uint64_t draws() const { return draws_; }

  // Empty when nothing but the views was written.
  std::string trespass() const;

 private:
  struct Block {
    std::vector<uint8_t> bytes, before;  // with guards; as handed out
    std::vector<uint8_t> inside;         // 1 where a byte belongs to the view
  };
  View make(DType dtype, std::initializer_list<int64_t> shape, int64_t gap);
  DType floating_;
  uint64_t seed_, draws_ = 0;
  std::deque<Block> blocks_;
};

double element(const View& view, int64_t i);  // i in row-major order of the shape, gaps skipped
void set_element(const View& view, int64_t i, double value);

// max |a - b| / max |b| of two views of one shape; both infinite or NaN alike count as equal; a NaN
// or an infinity where the other has none is infinity. With max |b| = 0: max |a|.
double max_norm_error(const View& a, const View& b);

// Highway's targets that were built and that this processor runs, by name.
std::vector<std::pair<int64_t, std::string>> targets();
void force_target(int64_t target);  // 0: no longer

// Notes a line of the table that the program prints at its end.
void note(const std::string& op, const std::string& implementation, const std::string& target,
          double error);

namespace detail {
std::vector<uint8_t> bits(const View& view);
void check_run(const std::string& label, double error, double tolerance);
std::unique_ptr<Device> emulated();
}  // namespace detail

template <class Args>
using Builder = std::function<Args(Buffers&)>;

template <class Args>
std::vector<View> outputs_of(Args args) {
  std::vector<View> out;
  args.views([&](View& v, Role role) {
    if (v && role != Role::kIn) out.push_back(v);
  });
  return out;
}

// One direct run.
template <class Args>
const char* run_once(const Implementation<Args>& implementation, const Args& args, int threads) {
  args.check();
  ThreadPool pool(threads);
  const int64_t bytes =
      implementation.workspace_bytes ? implementation.workspace_bytes(args, threads) : 0;
  std::vector<uint64_t> space(static_cast<size_t>(bytes) / 8 + 8, ~uint64_t{0});  // NaN
  KernelEnv env{pool, View(space.data(), DType::kU8, Memory::kHost, {bytes})};
  const char* target = implementation.run(args, env);
  const auto* end = reinterpret_cast<const uint8_t*>(space.data()) + bytes;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(end[i], 0xff) << "wrote past its workspace";
  return target;
}

template <class Args>
void reference(const Args& args) {
  run_once(implementations<Args>().back(), args, 1);
}

// Through launch() on a device whose memory the host cannot touch.
template <class Args>
std::vector<std::vector<uint8_t>> run_emulated(const std::string& implementation,
                                               const Builder<Args>& build) {
  auto device = detail::emulated();
  Log log;
  Context ctx(*device, log);
  ctx.forced_kernels[Args::kName] = implementation;
  Buffers buffers(DType::kF32);
  const Args host = build(buffers);
  Args there = host;
  struct Pair {
    View host, span, device;
    Role role;
  };
  std::deque<Tensor> tensors;
  std::vector<Pair> pairs;
  // Views that are one memory on the host stay one memory there.
  there.views([&](View& v, Role role) {
    if (!v || v.elements() == 0) return;
    int64_t length = 1;
    for (int i = 0; i < v.rank; ++i) length += (v.shape[i] - 1) * v.stride[i];
    const View span(v.data, v.dtype, Memory::kHost, {length});
    const View original = v;
    for (const Pair& p : pairs)
      if (p.host.data == v.data && p.span.shape[0] >= length) {
        v.data = p.device.data;
        v.memory = Memory::kDevice;
        pairs.push_back({original, p.span, p.device, role});
        return;
      }
    tensors.push_back(ctx.allocate(MemoryClass::kActivations, v.dtype, {length}));
    copy(*ctx.stream, tensors.back(), span);
    v.data = tensors.back().view().data;
    v.memory = Memory::kDevice;
    pairs.push_back({original, span, tensors.back(), role});
  });
  launch(ctx, there);
  for (const Pair& p : pairs)
    if (p.role != Role::kIn) copy(*ctx.stream, p.span, p.device);
  ctx.stream->synchronize("test.conformance");
  std::vector<std::vector<uint8_t>> out;
  for (const View& v : outputs_of(host)) out.push_back(detail::bits(v));
  return out;
}

template <class Args>
void conform(const std::string& label, const Builder<Args>& build) {
  Buffers exact(DType::kF64);
  const Args oracle = build(exact);
  reference(oracle);
  EXPECT_EQ(exact.trespass(), "") << Args::kName << ", " << label << ", reference in f64";
  const std::vector<View> want = outputs_of(oracle);

  for (const Implementation<Args>& implementation : implementations<Args>()) {
    Buffers probe(DType::kF32);
    const Args shape = build(probe);
    if (implementation.refuse && implementation.refuse(shape)) continue;
    for (const auto& [target, target_name] : targets()) {
      force_target(target);
      std::vector<std::vector<uint8_t>> first;
      std::string ran;
      for (int threads = 1; threads <= 4; ++threads) {
        Buffers buffers(DType::kF32);
        const Args args = build(buffers);
        ran = run_once(implementation, args, threads);
        const std::string where = std::string(Args::kName) + ", " + label + ", " +
                                  implementation.name + " on " + ran + ", " +
                                  std::to_string(threads) + " threads";
        EXPECT_EQ(buffers.trespass(), "") << where;
        EXPECT_TRUE(ran == "scalar" || ran == target_name)
            << where << " in place of " << target_name;
        std::vector<std::vector<uint8_t>> now;
        const std::vector<View> got = outputs_of(args);
        for (size_t i = 0; i < got.size(); ++i) {
          now.push_back(detail::bits(got[i]));
          if (threads > 1) continue;
          const double error = max_norm_error(got[i], want[i]);
          detail::check_run(where + ", output " + std::to_string(i), error, Args::kTolerance);
          note(Args::kName, implementation.name, ran, error);
        }
        if (threads == 1) first = now;
        EXPECT_EQ(now, first) << where << ": other bits than one thread";
      }
      if (target == targets().front().first) {
        EXPECT_EQ(run_emulated<Args>(implementation.name, build), first)
            << Args::kName << ", " << label << ", " << implementation.name << " on emu";
      }
      if (ran == "scalar") break;  // the same on every target
    }
    force_target(0);
  }
}

// Central differences in double: for each (x, dx) the gradient of loss() by every element of x must
// be dx. `loss` recomputes from the views' present values.
void expect_gradient(const std::string& label, const std::function<double()>& loss,
                     const std::vector<std::pair<View, View>>& inputs, double tolerance = 1e-6);

// Sum of weight * element over a view, with fixed weights that are the matching `output gradient`.
double weighted_sum(const View& view, const View& weights);

}  // namespace rondo::testing

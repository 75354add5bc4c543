// What every operation is made of: arguments, a list of implementations, and launch().
//
// An operation `x` has ops/x.h (arguments, shape rule, mathematics, tolerance), ops/x_cost.h (FLOPs
// and bytes), ref/x.cc (plain loops that add in double: the oracle), cpu/x.cc (vectorised and
// threaded) and lists/x.cc (the implementations, best first, reference last).
//
// The arguments are one struct of views and numbers, here called Args, with
//   static constexpr const char* kName;   // "rms_norm"
//   static constexpr double kTolerance;   // fp32 against double: max|a-b| / max|b| of any output
//   void check() const;                   // the shape rule; InvariantError that names the
//   operation template <class F> void views(F&& f); // f(View&, Role) for each view, null ones too
// Floating views are all f32, or all f64: f64 is for the reference alone, which makes finite
// differences sharp. Views may have gaps between rows; the last dimension is dense.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "device/context.h"

namespace rondo {

// kOut: every element is written, none is read. kInOut: read and written.
enum class Role : uint8_t { kIn, kOut, kInOut };

// What an implementation has while it runs. Views are translated: their pointers may be followed.
struct KernelEnv {
  ThreadPool& pool;
  View workspace;  // u8, at least workspace_bytes(args, pool.threads()); contents undefined
};

template <class Args>
struct Implementation {
  const char* name;
  // Null when it takes these arguments, else the reason why not. Sees shapes, not data.
  const char* (*refuse)(const Args& args);
  // May be null for none. The result must not depend on data.
  int64_t (*workspace_bytes)(const Args& args, int threads);
  // Returns the instruction set that ran, as Highway names it, or "scalar": the proof that a forced
  // one was taken. The same bits at any number of threads.
  const char* (*run)(const Args& args, KernelEnv& env);
};

// The list of an operation: lists/x.cc specialises it, ops/x.h declares the specialisation.
template <class Args>
std::span<const Implementation<Args>> implementations();

namespace detail {
// The index of the first that does not refuse, or of the forced one.
struct Candidate {
  const char* name;
  const char* refusal;
};
size_t choose(const Context& ctx, const char* op, std::span<const Candidate> candidates);
}  // namespace detail

// Checks, chooses, and submits to the compute stream. The views must stay valid until then: tensors
// of ctx's arena do by construction.
template <class Args>
void launch(Context& ctx, const Args& args) {
  args.check();
  const auto list = implementations<Args>();
  constexpr size_t kMost = 8;
  RONDO_CHECK(list.size() <= kMost, "{}: {} implementations", Args::kName, list.size());
  detail::Candidate candidates[kMost];
  for (size_t i = 0; i < list.size(); ++i)
    candidates[i] = {list[i].name, list[i].refuse ? list[i].refuse(args) : nullptr};
  const Implementation<Args>& chosen =
      list[detail::choose(ctx, Args::kName, {candidates, list.size()})];
  const int64_t bytes =
      chosen.workspace_bytes ? chosen.workspace_bytes(args, ctx.device.threads()) : 0;
  Tensor workspace;
  if (bytes > 0) workspace = ctx.allocate(MemoryClass::kWorkspace, DType::kU8, {bytes});
  ctx.submit(Args::kName, [there = Args(args), run = chosen.run,
                           space = workspace.view()](Executor& executor) mutable {
    there.views([&](View& view, Role) { view = executor.translate(view); });
    KernelEnv env{executor.pool(), executor.translate(space)};
    run(there, env);
  });
}

// A shape rule in one line: RONDO_RULE(x.rows() == y.rows(), "x and y differ in rows"); the message
// begins with the operation.
#define RONDO_RULE(condition, ...) RONDO_CHECK(condition, "{}: " __VA_ARGS__, kName)

}  // namespace rondo

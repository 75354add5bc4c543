// Tokens to the ranks that have their experts and results back, in waves: while experts compute on
// one wave, the next is on the wire. Bounded memory under any routing, nothing dropped.
//
// What experts do is the caller's affair: it gets rows that have arrived and returns one result a
// copy. A token's k results come home one by one and are added there in the order of k, whatever
// rank they come from.
#pragma once

#include <functional>
#include <memory>

#include "comm/communicator.h"
#include "device/context.h"
#include "parallel/dispatch_plan.h"

namespace rondo {

// Which experts are whose: expert e of `experts` belongs to the rank whose part of the range it is
// (part_range in placement.h).
struct ExpertShare {
  int64_t experts = 0, k = 0;
  int64_t wave_tokens = 0;  // copies a rank receives in a wave at most; 0: 1.25 local tokens k / 2
};

// The handle of one routing: made once in forward, kept for backward.
class Routing {
 public:
  const DispatchPlan& plan() const { return plan_; }
  View slot_copy() const { return slot_copy_; }  // i32 [T, k]: copies in the order they come home
  int64_t copies() const;                        // of this rank's tokens, all waves

 private:
  friend class ExpertDispatch;
  Routing(DispatchPlan plan, int rank, Tensor slot_copy)
      : plan_(std::move(plan)), rank_(rank), slot_copy_(std::move(slot_copy)) {}
  DispatchPlan plan_;
  int rank_;
  Tensor slot_copy_;
};

// Rows of one wave as they arrive on a rank with experts.
struct ArrivedWave {
  int index;
  View x;          // [N, H], rows have gaps
  View more;       // [N, M] or null
  View experts;    // i32 [N, k], numbered within this rank; -1: elsewhere
  View weights;    // [N, k]
  int64_t copies;  // choices of experts here: rows of the grouped products
};

class ExpertDispatch {
 public:
  // `ranks`: the expert axis, at least two. The context and communicator must outlive it.
  ExpertDispatch(Context& ctx, Communicator& ranks, const ExpertShare& share);
  ~ExpertDispatch();

  // [first, last) of the experts are this rank's.
  int64_t first_expert() const;
  int64_t local_experts() const;

  // Asks all ranks what they will send. `chosen` i32 [T, k], -1: nowhere. begin() submits, finish()
  // waits on the host for the counts: the only wait of a layer. Between them other work may be
  // submitted. Collective.
  void begin(const View& chosen);
  std::unique_ptr<Routing> finish();

  // Sends rows of x (and more), lets `compute` turn each wave into copies [wave.copies, width] in
  // the order of return_pack, and brings those home: returned [routing.copies(), width], where
  // routing.slot_copy() says which is whose. Collective; submits only.
  using Compute = std::function<void(const ArrivedWave& wave, const View& copies)>;
  void run(Routing& routing, const View& x, const View& more, const View& chosen,
           const View& weights, const View& returned, const Compute& compute);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rondo

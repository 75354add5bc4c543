#include "parallel/ring_attention.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "kernels/ops/elementwise.h"

namespace rondo {
namespace {

constexpr int64_t kPlaceInts = 4;

struct DocRange {
  int32_t first = std::numeric_limits<int32_t>::max(), last = -1;  // positions
};
using DocRanges = std::map<int32_t, DocRange>;

DocRanges ranges_of(const std::vector<Place>& places) {
  DocRanges out;
  for (const Place& at : places) {
    if (at.doc < 0) continue;
    DocRange& range = out[at.doc];
    range.first = std::min(range.first, at.pos);
    range.last = std::max(range.last, at.pos);
  }
  return out;
}

bool any_visible(const DocRanges& queries, const DocRanges& keys, int64_t window) {
  for (const auto& [doc, q] : queries) {
    const auto k = keys.find(doc);
    if (k == keys.end() || k->second.first > q.last) continue;
    if (window == 0 || q.first - int64_t{k->second.last} < window) return true;
  }
  return false;
}

// Rows of a block that travels: keys, values and places of one rank in one dense buffer.
struct Block {
  View all, k, v, places;
};

Block block_in(const View& buffer, int64_t tokens, const RingShape& s) {
  const int64_t k = tokens * s.key_heads * s.dqk, v = tokens * s.key_heads * s.dv;
  Block b;
  b.all = buffer.slice(0, 0, k + v + tokens * kPlaceInts);
  b.k = buffer.slice(0, 0, k).reshape({tokens, s.key_heads, s.dqk});
  b.v = buffer.slice(0, k, k + v).reshape({tokens, s.key_heads, s.dv});
  b.places = buffer.slice(0, k + v, k + v + tokens * kPlaceInts);
  b.places.dtype = DType::kI32;  // of the same size
  b.places = b.places.reshape({tokens, kPlaceInts});
  return b;
}
int64_t block_elements(int64_t tokens, const RingShape& s) {
  return tokens * (s.key_heads * (s.dqk + s.dv) + kPlaceInts);
}

// dk and dv of a block, in one dense buffer.
struct Gradient {
  View all, dk, dv;
};
Gradient gradient_in(const View& buffer, int64_t tokens, const RingShape& s) {
  const int64_t k = tokens * s.key_heads * s.dqk, v = tokens * s.key_heads * s.dv;
  return {buffer.slice(0, 0, k + v), buffer.slice(0, 0, k).reshape({tokens, s.key_heads, s.dqk}),
          buffer.slice(0, k, k + v).reshape({tokens, s.key_heads, s.dv})};
}

void copy_rows(Context& ctx, const View& from, const View& to) {
  if (from.elements() > 0) launch(ctx, AxpbyArgs{from, to, 1, 0});
}

// The blocks as they come by. At hop i this rank holds the block of rank - i.
class Ring {
 public:
  Ring(Context& ctx, Communicator* ring, const RingPlan& plan, const RingShape& shape,
       const View& k, const View& v, const View& places)
      : ctx_(ctx), ring_(ring), plan_(plan), shape_(shape) {
    RONDO_CHECK(plan.ranks() == size() && plan.tokens(rank()) == k.shape[0],
                "a plan of {} ranks, {} tokens here, for a ring of {}, {} tokens", plan.ranks(),
                plan.tokens(rank()), size(), k.shape[0]);
    if (plan.hops() == 0) {
      now_ = {{}, k, v, places};
      return;
    }
    for (Tensor& buffer : buffers_)
      buffer = ctx.allocate(MemoryClass::kCommunication, DType::kF32,
                            {std::max<int64_t>(block_elements(plan.most_tokens(), shape), 1)});
    now_ = block_in(buffers_[0], plan.tokens(rank()), shape);
    copy_rows(ctx, k, now_.k);
    copy_rows(ctx, v, now_.v);
    if (places.elements() > 0) copy(*ctx.stream, now_.places, places);
  }

  int rank() const { return ring_ ? ring_->rank() : 0; }
  int size() const { return ring_ ? ring_->size() : 1; }
  // The rank whose block is here at `hop`, and where this rank's is then.
  int owner(int hop) const { return (rank() - hop + size()) % size(); }
  int holder(int hop) const { return (rank() + hop) % size(); }
  const Block& now() const { return now_; }

  // Before the block of `hop` is computed on: the next one sets out, into the buffer of the block
  // before, which by then nobody reads.
  void send_ahead(int hop) {
    if (hop == plan_.hops()) return;
    next_ = block_in(buffers_[(hop + 1) % 2], plan_.tokens(owner(hop + 1)), shape_);
    on_the_way_ = ring_->exchange(*ctx_.stream, {{holder(1), now_.all}}, {{owner(1), next_.all}});
  }
  void advance(int hop) {
    if (hop == plan_.hops()) return;
    on_the_way_.wait(*ctx_.stream, "parallel.ring");
    now_ = next_;
  }

 private:
  Context& ctx_;
  Communicator* ring_;
  const RingPlan& plan_;
  const RingShape& shape_;
  Tensor buffers_[2];
  Block now_, next_;
  Work on_the_way_;
};

}  // namespace

RingPlan::RingPlan(const std::vector<std::vector<Place>>& places, int64_t window) {
  std::vector<DocRanges> ranges;
  for (const std::vector<Place>& mine : places) {
    tokens_.push_back(static_cast<int64_t>(mine.size()));
    ranges.push_back(ranges_of(mine));
  }
  const int n = ranks();
  for (int r = 0; r < n; ++r)
    for (int owner = 0; owner < n; ++owner) {
      const bool need =
          any_visible(ranges[static_cast<size_t>(r)], ranges[static_cast<size_t>(owner)], window);
      needs_.push_back(need);
      if (need) hops_ = std::max(hops_, (r - owner + n) % n);
    }
}

int64_t RingPlan::most_tokens() const {
  return *std::max_element(tokens_.begin(), tokens_.end());
}

void ring_attention_forward(Context& ctx, Communicator* ring, const RingPlan& plan,
                            const RingShape& shape, const View& q, const View& k, const View& v,
                            const View& places, const View& o, const View& lse) {
  const Tensor m = ctx.activation({q.shape[0], shape.heads});
  const Tensor l = ctx.activation({q.shape[0], shape.heads});
  Ring blocks(ctx, ring, plan, shape, k, v, places);
  bool first = true;
  for (int hop = 0; hop <= plan.hops(); ++hop) {
    blocks.send_ahead(hop);
    // The first block goes in whether it is seen or not: it begins the state.
    if (hop == 0 || plan.needs(blocks.rank(), blocks.owner(hop)))
      launch(ctx, AttentionBlockArgs{.q = q,
                                     .k = blocks.now().k,
                                     .v = blocks.now().v,
                                     .q_places = places,
                                     .k_places = blocks.now().places,
                                     .m = m,
                                     .l = l,
                                     .a = o,
                                     .first = std::exchange(first, false),
                                     .scale = shape.scale,
                                     .window = shape.window,
                                     .dropout = shape.dropout});
    blocks.advance(hop);
  }
  launch(ctx, AttentionFinishArgs{m, l, o, o, lse});
}

void ring_attention_backward(Context& ctx, Communicator* ring, const RingPlan& plan,
                             const RingShape& shape, const View& q, const View& k, const View& v,
                             const View& places, const View& o, const View& lse, const View& d_o,
                             const View& dq, const View& dk, const View& dv) {
  const Tensor delta = ctx.activation({q.shape[0], shape.heads});
  launch(ctx, AttentionDeltaArgs{o, d_o, delta});
  Ring blocks(ctx, ring, plan, shape, k, v, places);
  const auto backward = [&](const View& to_dk, const View& to_dv, bool first) {
    launch(ctx, AttentionBackwardArgs{.q = q,
                                      .k = blocks.now().k,
                                      .v = blocks.now().v,
                                      .q_places = places,
                                      .k_places = blocks.now().places,
                                      .lse = lse,
                                      .delta = delta,
                                      .d_o = d_o,
                                      .dq = dq,
                                      .dk = to_dk,
                                      .dv = to_dv,
                                      .accumulate_dq = !first,
                                      .scale = shape.scale,
                                      .window = shape.window,
                                      .dropout = shape.dropout});
  };
  if (plan.hops() == 0) return backward(dk, dv, true);

  // What this rank adds to a block is computed while the others' sum for it arrives.
  const int64_t most =
      std::max<int64_t>(plan.most_tokens() * shape.key_heads * (shape.dqk + shape.dv), 1);
  Tensor mine = ctx.allocate(MemoryClass::kCommunication, DType::kF32, {most});
  Tensor travelling[2];
  for (Tensor& t : travelling) t = ctx.allocate(MemoryClass::kCommunication, DType::kF32, {most});
  Gradient sum = gradient_in(travelling[0], plan.tokens(blocks.rank()), shape);
  Work arriving;
  for (int hop = 0; hop <= plan.hops(); ++hop) {
    blocks.send_ahead(hop);
    const int owner = blocks.owner(hop);
    const bool needed = hop == 0 || plan.needs(blocks.rank(), owner);
    const Gradient part = hop == 0 ? sum : gradient_in(mine, plan.tokens(owner), shape);
    if (needed) backward(part.dk, part.dv, hop == 0);
    if (hop > 0) {
      arriving.wait(*ctx.stream, "parallel.ring.gradient");
      sum = gradient_in(travelling[hop % 2], plan.tokens(owner), shape);
      if (needed && part.all.elements() > 0) launch(ctx, AxpbyArgs{part.all, sum.all, 1, 1});
    }
    if (hop < plan.hops()) {
      const Gradient next =
          gradient_in(travelling[(hop + 1) % 2], plan.tokens(blocks.owner(hop + 1)), shape);
      arriving =
          ring->exchange(*ctx.stream, {{blocks.holder(1), sum.all}}, {{blocks.owner(1), next.all}});
    }
    blocks.advance(hop);
  }
  // The block of owner(hops) is hops away from home: its sum goes there directly.
  const int last = plan.hops();
  const Gradient own = gradient_in(travelling[(last + 1) % 2], plan.tokens(blocks.rank()), shape);
  ring->exchange(*ctx.stream, {{blocks.owner(last), sum.all}}, {{blocks.holder(last), own.all}})
      .wait(*ctx.stream, "parallel.ring.home");
  copy_rows(ctx, own.dk, dk);
  copy_rows(ctx, own.dv, dv);
}

}  // namespace rondo

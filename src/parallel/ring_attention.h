// Exact attention over a sequence that is spread over ranks: each rank keeps its queries, keys and
// values travel round the ring, the next block in flight while this one is computed (Liu et al.,
// Ring Attention, 2023). The softmax stays unnormalised in fp32 from hop to hop and is divided
// once; in backward dk and dv travel with their block in fp32 and arrive home after the last hop.
//
// Which rank holds which token is the caller's affair: masks come from places alone, ranks may hold
// any tokens, any number of them, or none.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "kernels/ops/attention.h"

namespace rondo {

struct RingShape {
  int64_t heads = 0, key_heads = 0, dqk = 0, dv = 0;
  float scale = 1;
  int64_t window = 0;  // 0: none
  AttentionDropout dropout;
};

// How the tokens of one micro-batch lie on the ring. Made on the host, the same on every rank.
class RingPlan {
 public:
  // places[r]: of rank r's tokens, in its order. `window` as in RingShape: it decides which blocks
  // are needed.
  RingPlan(const std::vector<std::vector<Place>>& places, int64_t window);

  int ranks() const { return static_cast<int>(tokens_.size()); }
  int64_t tokens(int rank) const { return tokens_[static_cast<size_t>(rank)]; }
  int64_t most_tokens() const;
  // Whether a query of `rank` sees a key of `owner`.
  bool needs(int rank, int owner) const {
    return needs_[static_cast<size_t>(rank * ranks() + owner)] != 0;
  }
  // Hops after the first block until every rank has seen what it needs: at most ranks() - 1.
  int hops() const { return hops_; }

 private:
  std::vector<int64_t> tokens_;
  std::vector<uint8_t> needs_;
  int hops_ = 0;
};

// `ring` may be null when the plan has one rank.
// q [T, heads, dqk], k [T, key_heads, dqk], v [T, key_heads, dv], places i32 [T, 4], T this rank's
// tokens. Writes o [T, heads, dv] and lse [T, heads]. Every rank of the ring calls it; submits
// only. Two buffers of a block (keys, values, places of the rank with the most tokens) are booked
// under communication while it runs.
void ring_attention_forward(Context& ctx, Communicator* ring, const RingPlan& plan,
                            const RingShape& shape, const View& q, const View& k, const View& v,
                            const View& places, const View& o, const View& lse);

// Writes dq, dk, dv (as q, k, v) from d_o. Two more buffers for what travels, one for what is
// added.
void ring_attention_backward(Context& ctx, Communicator* ring, const RingPlan& plan,
                             const RingShape& shape, const View& q, const View& k, const View& v,
                             const View& places, const View& o, const View& lse, const View& d_o,
                             const View& dq, const View& dk, const View& dv);

}  // namespace rondo

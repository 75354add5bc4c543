// Exact attention, a block of keys at a time (Dao et al., FlashAttention-2; Liu et al., Ring
// Attention). Scores s = scale * q.k; a key is visible to a query when both are in the same
// document
// (>= 0), pos_k <= pos_q, and window = 0 or pos_q - pos_k < window. Places decide, never row
// numbers.
//
// Between blocks the state is unnormalised fp32: m = max s, l = sum e^(s-m), a = sum e^(s-m) v.
// Natural logarithm everywhere. A row that saw no key has m = -inf, l = 0, a = 0; finished: O = 0,
// L = -inf and zero gradients. What is masked is skipped, never multiplied away.
// Head h of the queries reads key head h / (Hq / Hk).
//
// Dropout (p > 0): the pair (query, key) of head h keeps weight 1/(1-p) when
// attention_keep(seed, h, query place, key place) says so; l is not dropped.
#pragma once

#include "base/random.h"
#include "kernels/op.h"
#include "tensor/place.h"

namespace rondo {

struct AttentionDropout {
  float p = 0;        // 0 is off
  uint64_t seed = 0;  // already mixed with step and layer (dropout_seed in ops/dropout.h)
};

// Says for one query which keys keep their weight. Keyed by where the tokens are: (seed, head,
// sample and offset of the query, offset of the key). One philox call serves four neighbouring key
// offsets.
class AttentionKeep {
 public:
  AttentionKeep(const AttentionDropout& d, int64_t head, const Place& q)
      : key_{d.seed + 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(head + 1), RandomUse::kDropout},
        query_((static_cast<uint64_t>(static_cast<uint32_t>(q.sample)) << 32) |
               static_cast<uint32_t>(q.offset)),
        p_(d.p) {}

  bool operator()(const Place& k) {
    const uint32_t offset = static_cast<uint32_t>(k.offset);
    if (offset >> 2 != at_) {
      at_ = offset >> 2;
      words_ = philox(key_, query_, at_);
    }
    return uniform01(words_[offset & 3]) >= p_;
  }

 private:
  RandomKey key_;
  uint64_t query_;
  float p_;
  uint32_t at_ = ~uint32_t{0};  // no offset's quarter
  std::array<uint32_t, 4> words_{};
};

inline bool attention_keep(const AttentionDropout& d, int64_t head, const Place& q,
                           const Place& k) {
  return AttentionKeep(d, head, q)(k);
}

inline bool attention_visible(const Place& q, const Place& k, int64_t window) {
  return q.doc >= 0 && q.doc == k.doc && k.pos <= q.pos && (window == 0 || q.pos - k.pos < window);
}

// Takes one block of keys into the state.
struct AttentionBlockArgs {
  static constexpr const char* kName = "attention_block";
  static constexpr double kTolerance = 4e-6;

  View q;                   // [Tq, Hq, dqk]
  View k, v;                // [Tk, Hk, dqk], [Tk, Hk, dv]
  View q_places, k_places;  // i32 [Tq, 4], [Tk, 4]
  View m, l;                // [Tq, Hq]
  View a;                   // [Tq, Hq, dv]
  bool first = true;        // start from an empty state, which is not read
  float scale = 1;
  int64_t window = 0;  // 0: none
  AttentionDropout dropout;

  int64_t group() const { return q.shape[1] / k.shape[1]; }

  void check() const {
    RONDO_RULE(q.rank == 3 && k.rank == 3 && v.rank == 3, "q, k, v [tokens, heads, dimension]");
    RONDO_RULE(q.shape[2] == k.shape[2] && k.shape[1] == v.shape[1] && k.shape[0] == v.shape[0],
               "q {}, k {}, v {}", to_string(q), to_string(k), to_string(v));
    RONDO_RULE(k.shape[1] > 0 && q.shape[1] % k.shape[1] == 0, "{} query heads, {} key heads",
               q.shape[1], k.shape[1]);
    RONDO_RULE(a.rank == 3 && a.shape[0] == q.shape[0] && a.shape[1] == q.shape[1] &&
                   a.shape[2] == v.shape[2],
               "a {}", to_string(a));
    RONDO_RULE(
        m.rank == 2 && m.shape[0] == q.shape[0] && m.shape[1] == q.shape[1] && same_shape(m, l),
        "m {}, l {}", to_string(m), to_string(l));
    RONDO_RULE(q_places.rank == 2 && q_places.rows() == q.shape[0] && q_places.cols() == 4 &&
                   k_places.rank == 2 && k_places.rows() == k.shape[0] && k_places.cols() == 4,
               "places {}, {}", to_string(q_places), to_string(k_places));
  }
  template <class F>
  void views(F&& f) {
    const Role state = first ? Role::kOut : Role::kInOut;
    f(q, Role::kIn);
    f(k, Role::kIn);
    f(v, Role::kIn);
    f(q_places, Role::kIn);
    f(k_places, Role::kIn);
    f(m, state);
    f(l, state);
    f(a, state);
  }
};

// After the last block: o = a / l, lse = m + ln l. o may be a.
struct AttentionFinishArgs {
  static constexpr const char* kName = "attention_finish";
  static constexpr double kTolerance = 2e-6;

  View m, l, a;  // as above
  View o;        // [Tq, Hq, dv]
  View lse;      // [Tq, Hq]

  void check() const {
    RONDO_RULE(same_shape(m, l) && same_shape(m, lse) && same_shape(a, o) && a.rank == 3 &&
                   m.rank == 2 && m.shape[0] == a.shape[0] && m.shape[1] == a.shape[1],
               "m {}, a {}, o {}, lse {}", to_string(m), to_string(a), to_string(o),
               to_string(lse));
  }
  template <class F>
  void views(F&& f) {
    f(m, Role::kIn);
    f(l, Role::kIn);
    f(a, Role::kIn);
    f(o, Role::kOut);
    f(lse, Role::kOut);
  }
};

// delta = rowsum(d_o * o), once a step, from the final o.
struct AttentionDeltaArgs {
  static constexpr const char* kName = "attention_delta";
  static constexpr double kTolerance = 2e-6;

  View o, d_o;  // [Tq, Hq, dv]
  View delta;   // [Tq, Hq]

  void check() const {
    RONDO_RULE(same_shape(o, d_o) && o.rank == 3 && delta.rank == 2 &&
                   delta.shape[0] == o.shape[0] && delta.shape[1] == o.shape[1],
               "o {}, d_o {}, delta {}", to_string(o), to_string(d_o), to_string(delta));
  }
  template <class F>
  void views(F&& f) {
    f(o, Role::kIn);
    f(d_o, Role::kIn);
    f(delta, Role::kOut);
  }
};

// For one (visiting) block of keys: p = e^(s-lse), dv += p^T d_o, dp = d_o v^T,
// ds = p (dp - delta) scale, dq += ds k, dk += ds^T q. Gradients of a key head sum over its
// queries' heads. With dropout dv uses the dropped p, and dp is masked and scaled.
struct AttentionBackwardArgs {
  static constexpr const char* kName = "attention_backward";
  static constexpr double kTolerance = 1e-5;

  View q, k, v, q_places, k_places;  // as forward
  View lse, delta;                   // [Tq, Hq]
  View d_o;                          // [Tq, Hq, dv]
  View dq, dk, dv;                   // as q, k, v
  bool accumulate_dq = false;        // add; otherwise not read
  bool accumulate_dkv = false;
  float scale = 1;
  int64_t window = 0;
  AttentionDropout dropout;

  int64_t group() const { return q.shape[1] / k.shape[1]; }

  void check() const {
    RONDO_RULE(q.rank == 3 && k.rank == 3 && v.rank == 3 && q.shape[2] == k.shape[2] &&
                   k.shape[1] == v.shape[1] && k.shape[0] == v.shape[0],
               "q {}, k {}, v {}", to_string(q), to_string(k), to_string(v));
    RONDO_RULE(k.shape[1] > 0 && q.shape[1] % k.shape[1] == 0, "{} query heads, {} key heads",
               q.shape[1], k.shape[1]);
    RONDO_RULE(same_shape(q, dq) && same_shape(k, dk) && same_shape(v, dv), "dq {}, dk {}, dv {}",
               to_string(dq), to_string(dk), to_string(dv));
    RONDO_RULE(d_o.rank == 3 && d_o.shape[0] == q.shape[0] && d_o.shape[1] == q.shape[1] &&
                   d_o.shape[2] == v.shape[2],
               "d_o {}", to_string(d_o));
    RONDO_RULE(lse.rank == 2 && lse.shape[0] == q.shape[0] && lse.shape[1] == q.shape[1] &&
                   same_shape(lse, delta),
               "lse {}, delta {}", to_string(lse), to_string(delta));
    RONDO_RULE(q_places.rank == 2 && q_places.rows() == q.shape[0] && q_places.cols() == 4 &&
                   k_places.rank == 2 && k_places.rows() == k.shape[0] && k_places.cols() == 4,
               "places {}, {}", to_string(q_places), to_string(k_places));
  }
  template <class F>
  void views(F&& f) {
    for (View* in : {&q, &k, &v, &q_places, &k_places, &lse, &delta, &d_o}) f(*in, Role::kIn);
    f(dq, accumulate_dq ? Role::kInOut : Role::kOut);
    f(dk, accumulate_dkv ? Role::kInOut : Role::kOut);
    f(dv, accumulate_dkv ? Role::kInOut : Role::kOut);
  }
};

template <>
std::span<const Implementation<AttentionBlockArgs>> implementations<AttentionBlockArgs>();
template <>
std::span<const Implementation<AttentionFinishArgs>> implementations<AttentionFinishArgs>();
template <>
std::span<const Implementation<AttentionDeltaArgs>> implementations<AttentionDeltaArgs>();
template <>
std::span<const Implementation<AttentionBackwardArgs>> implementations<AttentionBackwardArgs>();

}  // namespace rondo

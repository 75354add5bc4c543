#include "kernels/cpu/attention.h"

#include <cmath>
#include <optional>

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

// Up to kQueriesAtOnce queries of one head with their state, while all keys pass by.
class QueryChunk {
 public:
  // Without a space it only measures.
  QueryChunk(const AttentionBlockArgs& args, float* space) : args_(args) {
    const int64_t dqk = args.q.shape[2], dv = args.v.shape[2];
    Room room;
    const auto take = [&](int64_t floats) {
      const int64_t at = room.take(floats);
      return space ? space + at : nullptr;
    };
    q_ = take(kQueriesAtOnce * dqk);
    k_ = take(kKeyTile * dqk);
    v_ = take(kKeyTile * round_up(dv, kColStep));
    scores_ = take(kQueryTile * kKeyTile);
    packed_ = take(kQueryTile * kKeyTile);
    sums_ = take(kQueriesAtOnce * dv);
    m_ = take(kQueriesAtOnce);
    l_ = take(kQueriesAtOnce);
    keep_ = take(kKeyTile);
    floats_ = room.total();
  }
  int64_t floats() const { return floats_; }

  void run(const TokenLists& lists, int64_t head, int64_t first_tile) {
    const TokenTiles& queries = lists.queries;
    head_ = head;
    const int64_t tiles = std::min(kQueriesAtOnce / kQueryTile, lists.queries.tiles() - first_tile);
    for (int64_t i = 0; i < tiles; ++i) load(queries, first_tile + i, i);
    for (int64_t k = 0; k < lists.keys.tiles(); ++k) {
      std::optional<KeyPlaces> places;
      for (int64_t i = 0; i < tiles; ++i) {
        const Meeting meeting =
            meeting_of(queries.range(first_tile + i), lists.keys.range(k), args_.window);
        if (meeting == Meeting::kNone) continue;
        const std::span<const int32_t> rows = lists.keys.rows(k);
        if (!places) {
          places.emplace(lists.keys, k);
          pack(rows);
        }
        visit(queries, first_tile + i, i, *places, rows, meeting == Meeting::kAll);
      }
    }
    for (int64_t i = 0; i < tiles; ++i) store(queries.rows(first_tile + i), i);
  }

 private:
  int64_t key_head() const { return head_ / args_.group(); }

  void load(const TokenTiles& queries, int64_t tile, int64_t i) {
    const std::span<const int32_t> rows = queries.rows(tile);
    const int64_t dqk = args_.q.shape[2], dv = args_.v.shape[2];
    const int64_t count = static_cast<int64_t>(rows.size());
    Pack<kMr>(RowsOf(args_.q, head_, rows), 0, count, 0, dqk, q_ + i * kQueryTile * dqk);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t at = i * kQueryTile + r, row = rows[static_cast<size_t>(r)];
      float* sums = sums_ + at * dv;
      if (args_.first) {
        m_[at] = -kInfinity;
        l_[at] = 0;
        std::fill(sums, sums + dv, 0.0f);
      } else {
        m_[at] = scalar_of(args_.m, row, head_);
        l_[at] = scalar_of(args_.l, row, head_);
        const float* a = row_of(args_.a, row, head_);
        std::copy(a, a + dv, sums);
      }
    }
  }

  void store(std::span<const int32_t> rows, int64_t i) const {
    const int64_t dv = args_.v.shape[2];
    for (size_t r = 0; r < rows.size(); ++r) {
      const int64_t at = i * kQueryTile + static_cast<int64_t>(r);
      scalar_of(args_.m, rows[r], head_) = m_[at];
      scalar_of(args_.l, rows[r], head_) = l_[at];
      std::copy(sums_ + at * dv, sums_ + (at + 1) * dv, row_of(args_.a, rows[r], head_));
    }
  }

  void pack(std::span<const int32_t> rows) {
    const int64_t count = static_cast<int64_t>(rows.size());
    Pack<kNr>(RowsOf(args_.k, key_head(), rows), 0, count, 0, args_.q.shape[2], k_);
    Pack<kNr>(SumOf(args_.v, key_head(), rows), 0, args_.v.shape[2], 0, count, v_);
    finite_ = AllFinite(args_.v, key_head(), rows);
  }

  void visit(const TokenTiles& queries, int64_t tile, int64_t i, const KeyPlaces& keys,
             std::span<const int32_t> key_rows, bool all) {
    const std::span<const int32_t> rows = queries.rows(tile);
    const int64_t count = static_cast<int64_t>(rows.size());
    const int64_t dqk = args_.q.shape[2], dv = args_.v.shape[2];
    MultiplyPacked(q_ + i * kQueryTile * dqk, k_, count, round_up(keys.count, kNr), dqk, scores_,
                   kKeyTile, false);
    all &= keys.count == kKeyTile;
    for (int64_t r = 0; r < count; ++r) {
      const Place at = queries.place_of(rows[static_cast<size_t>(r)]);
      weigh(scores_ + r * kKeyTile, keys, at, all, i * kQueryTile + r);
    }
    float* sums = sums_ + i * kQueryTile * dv;
    if (finite_) {
      Pack<kMr>({scores_, kKeyTile, nullptr, true}, 0, count, 0, keys.count, packed_);
      MultiplyPacked(packed_, v_, count, dv, keys.count, sums, dv, true);
    } else {
      AddVisibleRows(
          count, [&](int64_t r, int64_t k) { return scores_[r * kKeyTile + k]; }, args_.v,
          key_head(), key_rows, sums, dv);
    }
  }

  // Turns the scores of one query into weights relative to its new maximum.
  void weigh(float* HWY_RESTRICT s, const KeyPlaces& keys, const Place& q, bool all, int64_t at) {
    const D d;
    const Sight sight(q, args_.window);
    const V scale = hn::Set(d, args_.scale), none = hn::Set(d, -kInfinity);
    V most = hn::Set(d, m_[at]);
    for (int64_t i = 0; i < keys.columns(); i += kLanes) {
      V score = hn::Mul(hn::Load(d, s + i), scale);
      if (!all) score = hn::IfThenElse(sight.of(keys, i), score, none);
      hn::Store(score, d, s + i);
      most = hn::Max(most, score);
    }
    const float before = m_[at], m = hn::GetLane(hn::MaxOfLanes(d, most));
    if (m == -kInfinity) {  // nothing to see, or nothing but NaN
      for (int64_t i = 0; i < keys.count; ++i) {
        if (std::isnan(s[i])) l_[at] = s[i];
        s[i] = 0;
      }
      return;
    }
    const V top = hn::Set(d, m);
    V sum = hn::Zero(d);
    for (int64_t i = 0; i < keys.columns(); i += kLanes) {
      const V score = hn::Load(d, s + i);
      V p = ExpOrNan(d, hn::Sub(score, top));
      // Exp has the last word on what is far below, but not on -inf.
      p = hn::IfThenZeroElse(hn::Eq(score, none), p);
      sum = hn::Add(sum, p);
      hn::Store(p, d, s + i);
    }
    const float p_sum = hn::GetLane(hn::SumOfLanes(d, sum));
    if (m > before) {
      const float shrink = std::exp(before - m);  // 0 for an empty state
      l_[at] = l_[at] * shrink + p_sum;
      m_[at] = m;
      float* sums = sums_ + at * args_.v.shape[2];
      Scale(shrink, args_.v.shape[2], sums);
    } else {
      l_[at] += p_sum;
    }
    if (args_.dropout.p > 0) {
      KeepFactors(args_.dropout, head_, q, keys, keep_);
      for (int64_t i = 0; i < keys.count; ++i) s[i] *= keep_[i];
    }
  }

  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const AttentionBlockArgs& args_;
  float *q_, *k_, *v_;       // packed
  float *scores_, *packed_;  // of one pair of tiles: [kQueryTile][kKeyTile], and as packed rows
  float *sums_, *m_, *l_;    // the state
  float* keep_;
  int64_t floats_ = 0, head_ = 0;
  bool finite_ = true;  // every v of the tile
};

int64_t BlockFloats(const AttentionBlockArgs& args) {
  return QueryChunk(args, nullptr).floats();
}

const char* Block(const AttentionBlockArgs& args, KernelEnv& env) {
  const TokenLists lists(args.q_places, args.k_places, env.workspace);
  const Space space(env.workspace, BlockFloats(args), lists_bytes(args.q_places, args.k_places));
  const int64_t heads = args.q.shape[1], at_once = kQueriesAtOnce / kQueryTile;
  if (args.first)  // padding has a state too
    for (int64_t t = 0; t < args.q.shape[0]; ++t) {
      if (lists.queries.place_of(static_cast<int32_t>(t)).doc >= 0) continue;
      for (int64_t h = 0; h < heads; ++h) {
        scalar_of(args.m, t, h) = -std::numeric_limits<float>::infinity();
        scalar_of(args.l, t, h) = 0;
        std::fill_n(row_of(args.a, t, h), args.a.shape[2], 0.0f);
      }
    }
  const int64_t chunks = blocks_of(lists.queries.tiles(), at_once);
  env.pool.run(heads * chunks, [&](int64_t task, int worker) {
    QueryChunk(args, space.of(worker)).run(lists, task / chunks, task % chunks * at_once);
  });
  return hwy::TargetName(HWY_TARGET);
}

const char* Finish(const AttentionFinishArgs& args, KernelEnv& env) {
  const int64_t heads = args.a.shape[1], dv = args.a.shape[2];
  for_blocks(env.pool, args.a.shape[0], 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < heads; ++h) {
        const float l = scalar_of(args.l, t, h), m = scalar_of(args.m, t, h);
        const float* a = row_of(args.a, t, h);
        float* o = row_of(args.o, t, h);
        const bool empty = l == 0;  // NaN is not
        scalar_of(args.lse, t, h) =
            empty ? -std::numeric_limits<float>::infinity() : m + std::log(l);
        if (empty) {
          std::fill_n(o, dv, 0.0f);
        } else {
          if (o != a) std::copy_n(a, dv, o);
          Scale(1 / l, dv, o);
        }
      }
  });
  return hwy::TargetName(HWY_TARGET);
}

const char* Delta(const AttentionDeltaArgs& args, KernelEnv& env) {
  const int64_t heads = args.o.shape[1], dv = args.o.shape[2];
  for_blocks(env.pool, args.o.shape[0], 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < heads; ++h)
        scalar_of(args.delta, t, h) = Dot(row_of(args.o, t, h), row_of(args.d_o, t, h), dv);
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Block);
HWY_EXPORT(BlockFloats);
HWY_EXPORT(Finish);
HWY_EXPORT(Delta);
}  // namespace

int64_t attention_block_workspace(const AttentionBlockArgs& args, int threads) {
  return Space::bytes(HWY_DYNAMIC_DISPATCH(BlockFloats)(args), threads,
                      lists_bytes(args.q_places, args.k_places));
}

const char* attention_block(const AttentionBlockArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Block)(args, env);
}

const char* attention_finish(const AttentionFinishArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Finish)(args, env);
}

const char* attention_delta(const AttentionDeltaArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Delta)(args, env);
}

}  // namespace rondo::cpu
#endif

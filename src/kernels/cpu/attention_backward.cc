#include <cmath>
#include <optional>

#include "kernels/cpu/attention.h"
#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_backward.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

struct TileSpan {
  int64_t begin, end;
};

// The gradients that some tiles of queries, of some heads, and some tiles of keys of their key head
// give each other. Sums run over the keys' tiles for dq, over heads and queries' tiles for dk and
// dv, always upwards: whoever calls for which part, the bits are the same.
class BackwardTiles {
 public:
  // Without a space it only measures.
  BackwardTiles(const AttentionBackwardArgs& args, float* space) : args_(args) {
    Room room;
    const auto take = [&](int64_t floats) {
      const int64_t at = room.take(floats);
      return space ? space + at : nullptr;
    };
    q_ = take(kQueryTile * dqk());
    d_o_ = take(kQueryTile * dv());
    q_sum_ = take(kQueryTile * round_up(dqk(), kColStep));
    d_o_sum_ = take(kQueryTile * round_up(dv(), kColStep));
    k_ = take(kKeyTile * dqk());
    v_ = take(kKeyTile * dv());
    k_sum_ = take(kKeyTile * round_up(dqk(), kColStep));
    p_ = take(kQueryTile * kKeyTile);
    ds_ = take(kQueryTile * kKeyTile);
    packed_ = take(kQueryTile * round_up(kKeyTile, kRowStep));
    dq_tile_ = take(kQueryTile * dqk());
    dk_tile_ = take(kKeyTile * dqk());
    dv_tile_ = take(kKeyTile * dv());
    keep_ = take(kKeyTile);
    floats_ = room.total();
  }
  int64_t floats() const { return floats_; }

  // Heads [heads.begin, heads.end) read one key head.
  void run(const TokenLists& lists, TileSpan heads, TileSpan queries, TileSpan keys, bool want_dq,
           bool want_dkv) {
    want_dq_ = want_dq;
    want_dkv_ = want_dkv;
    key_head_ = heads.begin / args_.group();
    for (int64_t k = keys.begin; k < keys.end; ++k) {
      std::optional<KeyPlaces> places;
      key_rows_ = lists.keys.rows(k);
      for (head_ = heads.begin; head_ < heads.end; ++head_)
        for (int64_t q = queries.begin; q < queries.end; ++q) {
          const Meeting meeting =
              meeting_of(lists.queries.range(q), lists.keys.range(k), args_.window);
          if (meeting == Meeting::kNone) continue;
          if (!places) {
            places.emplace(lists.keys, k);
            pack_keys();
          }
          visit(lists.queries, q, *places, meeting == Meeting::kAll);
        }
      if (!places || !want_dkv) continue;
      add_rows(dk_tile_, args_.dk, key_head_, key_rows_);
      add_rows(dv_tile_, args_.dv, key_head_, key_rows_);
    }
  }

 private:
  int64_t dqk() const { return args_.q.shape[2]; }
  int64_t dv() const { return args_.v.shape[2]; }

  static void add_rows(const float* tile, const View& out, int64_t head,
                       std::span<const int32_t> rows) {
    const int64_t width = out.shape[2];
    for (size_t i = 0; i < rows.size(); ++i)
      AddScaled(1, tile + static_cast<int64_t>(i) * width, width, row_of(out, rows[i], head));
  }

  void pack_keys() {
    const int64_t count = static_cast<int64_t>(key_rows_.size());
    Pack<kNr>(RowsOf(args_.k, key_head_, key_rows_), 0, count, 0, dqk(), k_);
    Pack<kNr>(RowsOf(args_.v, key_head_, key_rows_), 0, count, 0, dv(), v_);
    if (want_dq_) {
      Pack<kNr>(SumOf(args_.k, key_head_, key_rows_), 0, dqk(), 0, count, k_sum_);
      keys_finite_ = AllFinite(args_.k, key_head_, key_rows_);
    }
    std::fill_n(dk_tile_, kKeyTile * dqk(), 0.0f);
    std::fill_n(dv_tile_, kKeyTile * dv(), 0.0f);
  }

  void visit(const TokenTiles& queries, int64_t tile, const KeyPlaces& keys, bool all) {
    const std::span<const int32_t> rows = queries.rows(tile);
    const int64_t count = static_cast<int64_t>(rows.size());
    const int64_t columns = round_up(keys.count, kNr);
    Pack<kMr>(RowsOf(args_.q, head_, rows), 0, count, 0, dqk(), q_);
    Pack<kMr>(RowsOf(args_.d_o, head_, rows), 0, count, 0, dv(), d_o_);
    MultiplyPacked(q_, k_, count, columns, dqk(), p_, kKeyTile, false);
    MultiplyPacked(d_o_, v_, count, columns, dv(), ds_, kKeyTile, false);
    all &= keys.count == kKeyTile;
    for (int64_t r = 0; r < count; ++r)
      differentiate(r, rows[static_cast<size_t>(r)], queries, keys, all);
    if (want_dq_) add_dq(rows, keys.count);
    if (want_dkv_) add_dkv(rows, keys.count);
  }

  // Turns scores and d_o.v of one query into dropped weights and the gradient of its scores.
  void differentiate(int64_t r, int32_t row, const TokenTiles& queries, const KeyPlaces& keys,
                     bool all) {
    const D d;
    float* HWY_RESTRICT p_row = p_ + r * kKeyTile;
    float* HWY_RESTRICT ds_row = ds_ + r * kKeyTile;
    const float lse = scalar_of(args_.lse, row, head_);
    if (lse == -std::numeric_limits<float>::infinity()) {  // saw nothing
      std::fill_n(p_row, kKeyTile, 0.0f);
      std::fill_n(ds_row, kKeyTile, 0.0f);
      return;
    }
    const Place at = queries.place_of(row);
    const Sight sight(at, args_.window);
    const bool dropout = args_.dropout.p > 0;
    if (dropout) KeepFactors(args_.dropout, head_, at, keys, keep_);
    const V scale = hn::Set(d, args_.scale), v_lse = hn::Set(d, lse);
    const V delta = hn::Set(d, scalar_of(args_.delta, row, head_));
    for (int64_t i = 0; i < keys.columns(); i += kLanes) {
      V p = ExpOrNan(d, hn::MulSub(hn::Load(d, p_row + i), scale, v_lse));
      V dp = hn::Load(d, ds_row + i);
      V dropped = p;
      if (dropout) {
        const V keep = hn::Load(d, keep_ + i);
        const auto gone = hn::Eq(keep, hn::Zero(d));
        dropped = hn::Mul(p, keep);
        dp = hn::IfThenZeroElse(gone, hn::Mul(dp, keep));
      }
      V ds = hn::Mul(hn::Mul(p, hn::Sub(dp, delta)), scale);
      if (!all) {
        const auto seen = sight.of(keys, i);
        dropped = hn::IfThenElseZero(seen, dropped);
        ds = hn::IfThenElseZero(seen, ds);
      }
      hn::Store(dropped, d, p_row + i);
      hn::Store(ds, d, ds_row + i);
    }
  }

  void add_dq(std::span<const int32_t> rows, int64_t keys) {
    const int64_t count = static_cast<int64_t>(rows.size());
    if (keys_finite_) {
      Pack<kMr>({ds_, kKeyTile, nullptr, true}, 0, count, 0, keys, packed_);
      MultiplyPacked(packed_, k_sum_, count, dqk(), keys, dq_tile_, dqk(), false);
    } else {
      std::fill_n(dq_tile_, count * dqk(), 0.0f);
      AddVisibleRows(
          count, [&](int64_t r, int64_t k) { return ds_[r * kKeyTile + k]; }, args_.k, key_head_,
          key_rows_, dq_tile_, dqk());
    }
    add_rows(dq_tile_, args_.dq, head_, rows);
  }

  void add_dkv(std::span<const int32_t> rows, int64_t keys) {
    add_transposed(ds_, rows, keys, args_.q, q_sum_, dk_tile_);
    add_transposed(p_, rows, keys, args_.d_o, d_o_sum_, dv_tile_);
  }

  // tile[key] += sum over the queries of weight(query, key) * row of `view`.
  void add_transposed(const float* weights, std::span<const int32_t> rows, int64_t keys,
                      const View& view, float* packed_rows, float* tile) {
    const int64_t count = static_cast<int64_t>(rows.size()), width = view.shape[2];
    if (!AllFinite(view, head_, rows)) {
      AddVisibleRows(
          keys, [&](int64_t k, int64_t r) { return weights[r * kKeyTile + k]; }, view, head_, rows,
          tile, width);
      return;
    }
    Pack<kNr>(SumOf(view, head_, rows), 0, width, 0, count, packed_rows);
    Pack<kMr>({weights, kKeyTile, nullptr, false}, 0, keys, 0, count, packed_);
    MultiplyPacked(packed_, packed_rows, keys, width, count, tile, width, true);
  }

  const AttentionBackwardArgs& args_;
  float *q_, *d_o_, *k_, *v_;             // packed, the sum over features
  float *q_sum_, *d_o_sum_, *k_sum_;      // packed, the sum over tokens
  float *p_, *ds_, *packed_;              // of one pair of tiles: [kQueryTile][kKeyTile]
  float *dq_tile_, *dk_tile_, *dv_tile_;  // what a tile gains
  float* keep_;
  int64_t floats_ = 0, head_ = 0, key_head_ = 0;
  std::span<const int32_t> key_rows_;
  bool want_dq_ = true, want_dkv_ = true, keys_finite_ = true;
};

int64_t BackwardFloats(const AttentionBackwardArgs& args) {
  return BackwardTiles(args, nullptr).floats();
}

inline void ZeroRows(const View& x, ThreadPool& pool) {
  for_blocks(pool, x.shape[0], 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < x.shape[1]; ++h) std::fill_n(row_of(x, t, h), x.shape[2], 0.0f);
  });
}

const char* Backward(const AttentionBackwardArgs& args, KernelEnv& env) {
  const TokenLists lists(args.q_places, args.k_places, env.workspace);
  const Space space(env.workspace, BackwardFloats(args), lists_bytes(args.q_places, args.k_places));
  if (!args.accumulate_dq) ZeroRows(args.dq, env.pool);
  if (!args.accumulate_dkv) {
    ZeroRows(args.dk, env.pool);
    ZeroRows(args.dv, env.pool);
  }
  const int64_t key_heads = args.k.shape[1], group = args.group();
  const int64_t q_tiles = lists.queries.tiles(), k_tiles = lists.keys.tiles();
  const TileSpan all_queries{0, q_tiles}, all_keys{0, k_tiles};
  // One pass computes scores once, but a key head is then one task. With few of them two passes
  // share the work out better; the bits are the same.
  if (key_heads % env.pool.threads() == 0 || key_heads >= 4 * env.pool.threads()) {
    env.pool.run(key_heads, [&](int64_t h, int worker) {
      BackwardTiles(args, space.of(worker))
          .run(lists, {h * group, (h + 1) * group}, all_queries, all_keys, true, true);
    });
    return hwy::TargetName(HWY_TARGET);
  }
  env.pool.run(key_heads * k_tiles, [&](int64_t task, int worker) {
    const int64_t h = task / k_tiles, k = task % k_tiles;
    BackwardTiles(args, space.of(worker))
        .run(lists, {h * group, (h + 1) * group}, all_queries, {k, k + 1}, false, true);
  });
  const int64_t at_once = kQueriesAtOnce / kQueryTile, chunks = blocks_of(q_tiles, at_once);
  env.pool.run(args.q.shape[1] * chunks, [&](int64_t task, int worker) {
    const int64_t h = task / chunks, first = task % chunks * at_once;
    BackwardTiles(args, space.of(worker))
        .run(lists, {h, h + 1}, {first, std::min(q_tiles, first + at_once)}, all_keys, true, false);
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Backward);
HWY_EXPORT(BackwardFloats);
}  // namespace

int64_t attention_backward_workspace(const AttentionBackwardArgs& args, int threads) {
  return Space::bytes(HWY_DYNAMIC_DISPATCH(BackwardFloats)(args), threads,
                      lists_bytes(args.q_places, args.k_places));
}

const char* attention_backward(const AttentionBackwardArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Backward)(args, env);
}

}  // namespace rondo::cpu
#endif

// What attention's forward and backward share, for each of Highway's targets: scores of a pair of
// tiles, their mask, and sums over tiles.
#if defined(RONDO_KERNELS_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_CPU_ATTENTION_INL_H_
#undef RONDO_KERNELS_CPU_ATTENTION_INL_H_
#else
#define RONDO_KERNELS_CPU_ATTENTION_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/gemm_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

using DI = hn::RebindToSigned<D>;

// Where the keys of a tile are; what is missing of a whole tile is padding.
struct KeyPlaces {
  alignas(64) int32_t doc[kKeyTile];
  alignas(64) int32_t pos[kKeyTile];
  Place place[kKeyTile];
  int64_t count = 0;

  KeyPlaces(const TokenTiles& keys, int64_t tile) {
    const std::span<const int32_t> rows = keys.rows(tile);
    count = static_cast<int64_t>(rows.size());
    for (int64_t i = 0; i < kKeyTile; ++i) {
      place[i] = i < count ? keys.place_of(rows[static_cast<size_t>(i)]) : Place{};
      doc[i] = place[i].doc;
      pos[i] = place[i].pos;
    }
  }
  int64_t columns() const { return round_up(count, kLanes); }
};

// Which keys one query sees.
class Sight {
 public:
  Sight(const Place& q, int64_t window)
      : doc_(q.doc), last_(q.pos), first_(std::numeric_limits<int32_t>::min()) {
    if (window > 0)
      first_ = static_cast<int32_t>(
          std::max<int64_t>(std::numeric_limits<int32_t>::min(), int64_t{q.pos} - window + 1));
  }
  HWY_INLINE hn::Mask<D> of(const KeyPlaces& keys, int64_t at) const {
    const DI d;
    const auto pos = hn::Load(d, keys.pos + at);
    const auto beyond = hn::Or(hn::Gt(pos, hn::Set(d, last_)), hn::Lt(pos, hn::Set(d, first_)));
    const auto seen = hn::AndNot(beyond, hn::Eq(hn::Load(d, keys.doc + at), hn::Set(d, doc_)));
    return hn::RebindMask(D(), seen);
  }

 private:
  int32_t doc_, last_, first_;
};

// What dropout multiplies the weights of one query with: 0 or 1 / (1 - p).
inline void KeepFactors(const AttentionDropout& dropout, int64_t head, const Place& q,
                        const KeyPlaces& keys, float* HWY_RESTRICT factor) {
  AttentionKeep keep(dropout, head, q);
  const float kept = 1 / (1 - dropout.p);
  for (int64_t i = 0; i < keys.columns(); ++i) factor[i] = keep(keys.place[i]) ? kept : 0.0f;
}

// The rows of one head that make up a tile: as rows of features, or summed over.
inline Operand RowsOf(const View& view, int64_t head, std::span<const int32_t> rows) {
  return {head_of(view, head), view.stride[0], rows.data(), true};
}
inline Operand SumOf(const View& view, int64_t head, std::span<const int32_t> rows) {
  return {head_of(view, head), view.stride[0], rows.data(), false};
}

inline bool AllFinite(const View& view, int64_t head, std::span<const int32_t> rows) {
  const D d;
  const int64_t width = view.shape[2];
  V zeros = hn::Zero(d);
  float rest = 0;
  for (const int32_t row : rows) {
    const float* x = head_of(view, head) + row * view.stride[0];
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes)
      zeros = hn::MulAdd(hn::LoadU(d, x + i), hn::Zero(d), zeros);
    for (; i < width; ++i) rest += x[i] * 0.0f;
  }
  return hn::GetLane(hn::SumOfLanes(d, zeros)) + rest == 0;
}

// to[i] += scale * from[i]
HWY_INLINE void AddScaled(float scale, const float* from, int64_t n, float* to) {
  const D d;
  const V s = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    hn::StoreU(hn::MulAdd(s, hn::LoadU(d, from + i), hn::LoadU(d, to + i)), d, to + i);
  for (; i < n; ++i) to[i] += scale * from[i];
}

HWY_INLINE void Scale(float scale, int64_t n, float* x) {
  const D d;
  const V s = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(hn::Mul(s, hn::LoadU(d, x + i)), d, x + i);
  for (; i < n; ++i) x[i] *= scale;
}

HWY_INLINE float Dot(const float* x, const float* y, int64_t n) {
  const D d;
  V sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    sum = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sum);
  float rest = 0;
  for (; i < n; ++i) rest += x[i] * y[i];
  return hn::GetLane(hn::SumOfLanes(d, sum)) + rest;
}

// out[i] += sum over j of weight(i, j) * row j. Weights of 0 are left out, not multiplied: this is
// for rows that hold an infinity or NaN, which no one may get who does not see them.
template <class Weight>
void AddVisibleRows(int64_t count, const Weight& weight, const View& view, int64_t head,
                    std::span<const int32_t> rows, float* out, int64_t stride) {
  for (int64_t i = 0; i < count; ++i)
    for (size_t j = 0; j < rows.size(); ++j)
      if (const float w = weight(i, static_cast<int64_t>(j)); w != 0)
        AddScaled(w, head_of(view, head) + rows[j] * view.stride[0], view.shape[2],
                  out + i * stride);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

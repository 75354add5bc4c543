// One tile of a product: packs blocks of both operands and multiplies panels of them.
// Included once for each instruction set.

#if defined(RONDO_KERNELS_CPU_GEMM_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_KERNELS_CPU_GEMM_KERNEL_INL_H_
#undef RONDO_KERNELS_CPU_GEMM_KERNEL_INL_H_
#else
#define RONDO_KERNELS_CPU_GEMM_KERNEL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "kernels/cpu/gemm_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A panel of a is kMr rows, a panel of b kNv vectors. All sums of their product stay in registers:
// 24 of 32 or 12 of 16, enough of them to hide the latency of the additions.
#if HWY_TARGET == HWY_SCALAR
constexpr int kMr = 4, kNv = 4;
#elif HWY_TARGET <= HWY_AVX3
constexpr int kMr = 12, kNv = 2;
#else
constexpr int kMr = 6, kNv = 2;
#endif
constexpr int kLanes = HWY_LANES(float);
constexpr int kNr = kNv * kLanes;
static_assert(kRowStep % kMr == 0 && kColStep % kNr == 0);
using D = hn::CappedTag<float, kLanes>;
using V = hn::Vec<D>;

#if HWY_TARGET != HWY_SCALAR
// 4 rows of 4 become 4 columns, `width` apart.
HWY_INLINE void Transpose4(const float* const* rows, int64_t at, float* HWY_RESTRICT to,
                           int64_t width) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, rows[0] + at), r1 = hn::LoadU(d, rows[1] + at);
  const auto r2 = hn::LoadU(d, rows[2] + at), r3 = hn::LoadU(d, rows[3] + at);
  const auto low01 = hn::InterleaveLower(d, r0, r1), low23 = hn::InterleaveLower(d, r2, r3);
  const auto high01 = hn::InterleaveUpper(d, r0, r1), high23 = hn::InterleaveUpper(d, r2, r3);
  hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, to + width);
  hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, to + 2 * width);
  hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, to + 3 * width);
}
#endif

// Panels of kWidth indices of `x` from `begin` to `end`, each [length][kWidth], the sum's index
// from `first` on. The last panel is filled up with zeros.
template <int kWidth>
void Pack(const Operand& x, int64_t begin, int64_t end, int64_t first, int64_t length,
          float* HWY_RESTRICT to) {
  if (!x.sum_is_dense) {
    for (int64_t p = 0; p < length; ++p) {
      const int64_t row = x.rows ? x.rows[first + p] : first + p;
      const float* from = x.data + row * x.stride;
      float* out = to + p * kWidth;
      int64_t i = begin;
      for (; i + kWidth <= end; i += kWidth, out += length * kWidth)
        std::memcpy(out, from + i, kWidth * sizeof(float));
      if (i == end) continue;
      for (int64_t j = 0; j < kWidth; ++j) out[j] = i + j < end ? from[i + j] : 0.0f;
    }
    return;
  }
  for (; begin < end; begin += kWidth, to += length * kWidth) {
    const int64_t count = std::min<int64_t>(kWidth, end - begin);
    int64_t i = 0;
    for (; i < count; i += 4) {
      const int64_t some = std::min<int64_t>(4, count - i);
      const float* rows[4];
      for (int64_t j = 0; j < some; ++j)
        rows[j] = x.data + (x.rows ? x.rows[begin + i + j] : begin + i + j) * x.stride + first;
      float* out = to + i;
      int64_t p = 0;
#if HWY_TARGET != HWY_SCALAR
      if (some == 4)
        for (; p + 4 <= length; p += 4) Transpose4(rows, p, out + p * kWidth, kWidth);
#endif
      for (; p < length; ++p)
        for (int64_t j = 0; j < some; ++j) out[p * kWidth + j] = rows[j][p];
    }
    if (count == kWidth) continue;
    for (int64_t p = 0; p < length; ++p)
      for (int64_t j = count; j < kWidth; ++j) to[p * kWidth + j] = 0.0f;
  }
}

// kRows rows and kVectors vectors of c, of which the last is `last` lanes wide.
template <int kRows, int kVectors>
void Panel(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t length,
           float* HWY_RESTRICT c, int64_t stride, int64_t last, bool add) {
  const D d;
  V sum[kRows][kVectors];
  HWY_UNROLL(12)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::Zero(d);
  }
  for (int64_t p = 0; p < length; ++p, a += kMr, b += kNr) {
    V column[kVectors];
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) column[j] = hn::Load(d, b + j * kLanes);
    HWY_UNROLL(12)
    for (int i = 0; i < kRows; ++i) {
      const V row = hn::Set(d, a[i]);
      HWY_UNROLL(4)
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(row, column[j], sum[i][j]);
    }
  }
  const auto mask = hn::FirstN(d, static_cast<size_t>(last));
  HWY_UNROLL(12)
  for (int i = 0; i < kRows; ++i) {
    float* HWY_RESTRICT out = c + i * stride;
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) {
      V v = sum[i][j];
      if (j + 1 < kVectors || last == kLanes) {
        if (add) v = hn::Add(hn::LoadU(d, out + j * kLanes), v);
        hn::StoreU(v, d, out + j * kLanes);
      } else {
        if (add) v = hn::Add(hn::MaskedLoad(mask, d, out + j * kLanes), v);
        hn::BlendedStore(v, mask, d, out + j * kLanes);
      }
    }
  }
}

using PanelFunction = void (*)(const float*, const float*, int64_t, float*, int64_t, int64_t, bool);

template <int kRows>
PanelFunction PanelOf(int64_t vectors) {
  if constexpr (kNv == 4) {
    if (vectors == 3) return Panel<kRows, 3>;
    if (vectors == 4) return Panel<kRows, 4>;
  }
  return vectors == 1 ? Panel<kRows, 1> : Panel<kRows, 2>;
}

template <int kRows = kMr>
PanelFunction PanelOf(int64_t rows, int64_t vectors) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return PanelOf<kRows - 1>(rows, vectors);
  }
  return PanelOf<kRows>(vectors);
}

// c[rows, cols] (+)= packed_a . packed_b: what Pack<kMr> and Pack<kNr> made of `length` indices of
// the sum. The order of an element's sum is that of p.
inline void MultiplyPacked(const float* packed_a, const float* packed_b, int64_t rows, int64_t cols,
                           int64_t length, float* c, int64_t stride, bool add) {
  for (int64_t m = 0; m < rows; m += kMr, packed_a += kMr * length) {
    const int64_t some_rows = std::min<int64_t>(kMr, rows - m);
    const PanelFunction whole = PanelOf(some_rows, kNv);
    const float* panel_b = packed_b;
    for (int64_t n = 0; n < cols; n += kNr, panel_b += kNr * length) {
      const int64_t some_cols = std::min<int64_t>(kNr, cols - n);
      const int64_t vectors = blocks_of(some_cols, kLanes);
      const PanelFunction panel = vectors == kNv ? whole : PanelOf(some_rows, vectors);
      panel(packed_a, panel_b, length, c + m * stride + n, stride,
            some_cols - (vectors - 1) * kLanes, add);
    }
  }
}

// c[m, n] (+)= sum over p of a(m, p) b(n, p), for the given ranges; at most kTileRows by kTileCols.
// `space` is one worker's.
inline void MultiplyTile(const Operand& a, const Operand& b, int64_t m_begin, int64_t m_end,
                         int64_t n_begin, int64_t n_end, int64_t k_begin, int64_t k_end, float* c,
                         int64_t stride, bool add, float* space) {
  if (k_begin == k_end && !add) {
    for (int64_t m = m_begin; m < m_end; ++m)
      std::fill(c + m * stride + n_begin, c + m * stride + n_end, 0.0f);
  }
  for (int64_t k = k_begin; k < k_end; k += kBlock, add = true) {
    const int64_t length = std::min(kBlock, k_end - k);
    float* packed_b = space;
    float* packed_a = space + round_up(n_end - n_begin, kNr) * length;
    Pack<kNr>(b, n_begin, n_end, k, length, packed_b);
    Pack<kMr>(a, m_begin, m_end, k, length, packed_a);
    MultiplyPacked(packed_a, packed_b, m_end - m_begin, n_end - n_begin, length,
                   c + m_begin * stride + n_begin, stride, add);
  }
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

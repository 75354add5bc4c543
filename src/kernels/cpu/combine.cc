#include "kernels/cpu/route.h"
#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/combine.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One token: its rows of x that exist, found anew for each few columns because k has no bound.
struct Token {
  const float* x;
  int64_t stride;
  const int32_t* rows;
  int64_t first, k;     // rows[first] is the first that exists; k if none does
  const float* addend;  // or null
  float* y;
};

// Four vectors of columns from i on; D of one lane with kVectors = 1 for the tail. Additions alone,
// so that the width of the vectors does not show in the bits.
template <int kVectors, class D>
HWY_INLINE void Columns(D d, const Token& token, int64_t i) {
  using V = hn::Vec<D>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kSecond = kVectors > 1 ? 1 : 0, kThird = 2 * kSecond, kFourth = 3 * kSecond;
  const auto at = [&](const float* row, int v) { return hn::LoadU(d, row + i + v * lanes); };
  V a = hn::Zero(d), b = a, c = a, e = a;
  const float* begin = nullptr;
  if (token.first < token.k)
    begin = token.x + token.rows[token.first] * token.stride;
  else if (token.addend)
    begin = token.addend;
  // The first is taken, not added to 0, which would turn -0 into 0.
  if (begin) {
    a = at(begin, 0), b = at(begin, kSecond), c = at(begin, kThird), e = at(begin, kFourth);
  }
  const auto add = [&](const float* row) HWY_ATTR {
    a = hn::Add(a, at(row, 0));
    if (kVectors > 1) {
      b = hn::Add(b, at(row, kSecond));
      c = hn::Add(c, at(row, kThird));
      e = hn::Add(e, at(row, kFourth));
    }
  };
  for (int64_t j = token.first + 1; j < token.k; ++j)
    if (token.rows[j] >= 0) add(token.x + token.rows[j] * token.stride);
  if (token.addend && begin != token.addend) add(token.addend);
  hn::StoreU(a, d, token.y + i);
  if (kVectors > 1) {
    hn::StoreU(b, d, token.y + i + lanes);
    hn::StoreU(c, d, token.y + i + 2 * lanes);
    hn::StoreU(e, d, token.y + i + 3 * lanes);
  }
}

const char* Combine(const CombineArgs& args, KernelEnv& env) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t n = args.y.cols(), k = args.slot_row.cols();
  for_blocks(env.pool, args.y.rows(), 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      const int32_t* rows = args.slot_row.as<int32_t>() + t * args.slot_row.stride[0];
      int64_t first = k;
      for (int64_t j = k - 1; j >= 0; --j) {
        RONDO_CHECK(rows[j] < args.x.rows(), "combine: row {} of {}", rows[j], args.x.rows());
        if (rows[j] >= 0) first = j;
      }
      const Token token{args.x.as<float>(),
                        args.x.stride[0],
                        rows,
                        first,
                        k,
                        args.addend ? args.addend.as<float>() + t * args.addend.stride[0] : nullptr,
                        args.y.as<float>() + t * args.y.stride[0]};
      int64_t i = 0;
      for (; i + 4 * lanes <= n; i += 4 * lanes) Columns<4>(d, token, i);
      for (; i + lanes <= n; i += lanes) Columns<1>(d, token, i);
      for (; i < n; ++i) Columns<1>(one, token, i);
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Combine);
}  // namespace

const char* combine(const CombineArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Combine)(args, env);
}

}  // namespace rondo::cpu
#endif

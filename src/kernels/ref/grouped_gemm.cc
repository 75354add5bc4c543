#include "kernels/ref/grouped_gemm.h"

#include <algorithm>
#include <vector>

#include "kernels/ref/floating.h"

namespace rondo::ref {
namespace {

// Row r of an operand that may come with a list of rows.
template <class T>
const T* gathered(const View& operand, const View& rows, int64_t r) {
  return row<T>(operand, rows ? rows.as<int32_t>()[r] : r);
}

}  // namespace

const char* grouped_gemm(const GroupedGemmArgs& args, KernelEnv&) {
  return by_dtype(args.c, [&](auto zero) {
    using T = decltype(zero);
    const bool turned = args.form == GroupedGemmArgs::Form::kNT;
    const int64_t b_k = turned ? 1 : args.b.stride[1], b_col = turned ? args.b.stride[1] : 1;
    const int64_t n = args.n(), k = args.k();
    const int32_t* offsets = args.offsets.as<int32_t>();
    for (int64_t e = 0; e < args.groups(); ++e)
      for (int64_t r = offsets[e]; r < offsets[e + 1]; ++r) {
        const T* a = gathered<T>(args.a, args.a_rows, r);
        T* c = row<T>(args.c, r);
        for (int64_t j = 0; j < n; ++j) {
          const T* b = row<T>(args.b, e) + j * b_col;
          double sum = 0;
          for (int64_t p = 0; p < k; ++p) sum += double(a[p]) * b[p * b_k];
          c[j] = static_cast<T>(sum);
        }
      }
  });
}

const char* grouped_wgrad(const GroupedWgradArgs& args, KernelEnv&) {
  return by_dtype(args.c, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.n(), k = args.k();
    const int32_t* offsets = args.offsets.as<int32_t>();
    std::vector<double> sums(static_cast<size_t>(n * k));
    for (int64_t e = 0; e < args.groups(); ++e) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t r = offsets[e]; r < offsets[e + 1]; ++r) {
        const T* a = gathered<T>(args.a, args.a_rows, r);
        const T* b = gathered<T>(args.b, args.b_rows, r);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < k; ++j) sums[i * k + j] += double(a[i]) * b[j];
      }
      for (int64_t i = 0; i < n; ++i) {
        T* c = row<T>(args.c, e) + i * args.c.stride[1];
        for (int64_t j = 0; j < k; ++j)
          c[j] = static_cast<T>((args.accumulate ? c[j] : 0.0) + sums[i * k + j]);
      }
    }
  });
}

}  // namespace rondo::ref

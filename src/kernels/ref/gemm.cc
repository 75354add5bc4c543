#include "kernels/ref/gemm.h"

#include "kernels/ref/floating.h"

namespace rondo::ref {

const char* gemm(const GemmArgs& args, KernelEnv&) {
  return by_dtype(args.c, [&](auto zero) {
    using T = decltype(zero);
    const bool a_turned = args.form == GemmArgs::Form::kTN;
    const bool b_turned = args.form == GemmArgs::Form::kNT;
    const int64_t a_row = a_turned ? 1 : args.a.stride[0], a_k = a_turned ? args.a.stride[0] : 1;
    const int64_t b_k = b_turned ? 1 : args.b.stride[0], b_col = b_turned ? args.b.stride[0] : 1;
    const int64_t m = args.m(), n = args.n(), k = args.k();
    for (int64_t i = 0; i < m; ++i) {
      T* c = row<T>(args.c, i);
      for (int64_t j = 0; j < n; ++j) {
        const T* a = args.a.as<T>() + i * a_row;
        const T* b = args.b.as<T>() + j * b_col;
        double sum = args.accumulate ? c[j] : 0.0;
        for (int64_t p = 0; p < k; ++p) sum += double(a[p * a_k]) * b[p * b_k];
        c[j] = static_cast<T>(sum);
      }
    }
  });
}

}  // namespace rondo::ref

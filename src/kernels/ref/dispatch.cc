#include "kernels/ref/dispatch.h"

#include <algorithm>

#include "kernels/ref/floating.h"

namespace rondo::ref {
namespace {

bool has(const View& bounds, int64_t rank, int32_t expert) {
  const int32_t* b = bounds.as<int32_t>();
  return expert >= b[rank] && expert < b[rank + 1];
}

}  // namespace

const char* dispatch_count(const DispatchCountArgs& args, KernelEnv&) {
  const int64_t ranks = args.bounds.shape[0] - 1;
  int32_t* counts = args.counts.as<int32_t>();
  std::fill_n(counts, args.counts.elements(), 0);
  for (int64_t t = 0; t < args.experts.rows(); ++t)
    for (int64_t r = 0; r < ranks; ++r) {
      int32_t copies = 0;
      for (int64_t j = 0; j < args.experts.cols(); ++j)
        copies += has(args.bounds, r, row<int32_t>(args.experts, t)[j]);
      int32_t* mine = counts + (t / args.tile * ranks + r) * 2;
      mine[0] += copies > 0;
      mine[1] += copies;
    }
  return "scalar";
}

const char* dispatch_pack(const DispatchPackArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const int64_t k = args.experts.cols(), h = args.x.cols(), m = args.more ? args.more.cols() : 0;
    int64_t next = 0;
    int32_t copy = static_cast<int32_t>(args.first_copy);
    for (int64_t t = 0; t < args.x.rows(); ++t) std::fill_n(row<int32_t>(args.slot_copy, t), k, -1);
    for (int64_t r = 0; r + 1 < args.bounds.shape[0]; ++r)
      for (int64_t t = 0; t < args.x.rows(); ++t) {
        const int32_t* experts = row<int32_t>(args.experts, t);
        if (std::none_of(experts, experts + k, [&](int32_t e) { return has(args.bounds, r, e); }))
          continue;
        RONDO_CHECK(next < args.rows.rows(), "dispatch_pack: more rows than {}", args.rows.rows());
        T* out = row<T>(args.rows, next++);
        std::copy_n(row<T>(args.x, t), h, out);
        if (args.more) std::copy_n(row<T>(args.more, t), m, out + h);
        out += h + m;
        for (int64_t j = 0; j < k; ++j) {
          const bool here = has(args.bounds, r, experts[j]);
          out[j] = static_cast<T>(here ? experts[j] - args.bounds.as<int32_t>()[r] : -1);
          out[k + j] = row<T>(args.weights, t)[j];
          if (here) row<int32_t>(args.slot_copy, t)[j] = copy++;
        }
      }
    RONDO_CHECK(next == args.rows.rows(), "dispatch_pack: {} rows, not {}", next, args.rows.rows());
  });
}

const char* dispatch_unpack(const DispatchUnpackArgs& args, KernelEnv&) {
  return by_dtype(args.rows, [&](auto zero) {
    using T = decltype(zero);
    const int64_t k = args.experts.cols(), at = args.rows.cols() - 2 * k;
    for (int64_t r = 0; r < args.rows.rows(); ++r)
      for (int64_t j = 0; j < k; ++j) {
        row<int32_t>(args.experts, r)[j] = static_cast<int32_t>(row<T>(args.rows, r)[at + j]);
        row<T>(args.weights, r)[j] = row<T>(args.rows, r)[at + k + j];
      }
  });
}

const char* return_pack(const ReturnPackArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const int64_t h = args.x.cols();
    int64_t next = 0;
    for (int64_t r = 0; r < args.slot_row.rows(); ++r)
      for (int64_t j = 0; j < args.slot_row.cols(); ++j) {
        const int32_t from = row<int32_t>(args.slot_row, r)[j];
        if (from < 0) continue;
        RONDO_CHECK(next < args.copies.rows() && from < args.x.rows(),
                    "return_pack: copy {} of {}, row {} of {}", next, args.copies.rows(), from,
                    args.x.rows());
        T* out = row<T>(args.copies, next++);
        std::copy_n(row<T>(args.x, from), h, out);
        if (args.extra) out[h] = args.extra.as<T>()[from];
      }
    RONDO_CHECK(next == args.copies.rows(), "return_pack: {} copies, not {}", next,
                args.copies.rows());
  });
}

}  // namespace rondo::ref

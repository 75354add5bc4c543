#include "kernels/ref/route.h"

#include <algorithm>

#include "kernels/ref/floating.h"

namespace rondo::ref {

const char* route_plan(const RoutePlanArgs& args, KernelEnv&) {
  const int64_t tokens = args.experts.rows(), k = args.experts.cols();
  const int64_t n = args.counts.shape[0];
  int32_t* row_token = args.row_token.as<int32_t>();
  int32_t* row_slot = args.row_slot.as<int32_t>();
  int32_t* offsets = args.offsets.as<int32_t>();
  std::fill_n(row_token, tokens * k, 0);
  std::fill_n(row_slot, tokens * k, 0);
  int32_t next = 0;
  for (int64_t e = 0; e < n; ++e) {
    offsets[e] = next;
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t j = 0; j < k; ++j)
        if (row<int32_t>(args.experts, t)[j] == e) {
          row_token[next] = static_cast<int32_t>(t);
          row_slot[next] = static_cast<int32_t>(t * k + j);
          row<int32_t>(args.slot_row, t)[j] = next++;
        }
    args.counts.as<int64_t>()[e] += next - offsets[e];
  }
  offsets[n] = next;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < k; ++j) {
      const int32_t e = row<int32_t>(args.experts, t)[j];
      RONDO_CHECK(e < n, "route_plan: expert {} of {}", e, n);
      if (e < 0) row<int32_t>(args.slot_row, t)[j] = -1;
    }
  return "scalar";
}

const char* combine(const CombineArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const int64_t k = args.slot_row.cols();
    for (int64_t t = 0; t < args.y.rows(); ++t) {
      const int32_t* rows = row<int32_t>(args.slot_row, t);
      for (int64_t i = 0; i < args.y.cols(); ++i) {
        double sum = 0;
        bool any = false;  // the first one is taken, not added: 0 + -0 is not -0
        const auto add = [&](T value) {
          sum = any ? sum + value : value;
          any = true;
        };
        for (int64_t j = 0; j < k; ++j) {
          if (rows[j] < 0) continue;
          RONDO_CHECK(rows[j] < args.x.rows(), "combine: row {} of {}", rows[j], args.x.rows());
          add(row<T>(args.x, rows[j])[i]);
        }
        if (args.addend) add(row<T>(args.addend, t)[i]);
        row<T>(args.y, t)[i] = static_cast<T>(sum);
      }
    }
  });
}

}  // namespace rondo::ref

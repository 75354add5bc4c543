// A counting sort whose blocks of tokens count and place on their own. Nothing here is worth a
// vector: it is integers at scattered places.
#include <algorithm>

#include "kernels/cpu/route.h"
#include "kernels/rows.h"

namespace rondo::cpu {
namespace {

constexpr int64_t kBlock = 512;  // tokens

int64_t blocks_of(const RoutePlanArgs& args) {
  return (args.experts.rows() + kBlock - 1) / kBlock;
}

}  // namespace

// For each block and expert a count, which then becomes the next row.
int64_t route_plan_workspace(const RoutePlanArgs& args, int) {
  return blocks_of(args) * args.counts.shape[0] * static_cast<int64_t>(sizeof(int32_t));
}

const char* route_plan(const RoutePlanArgs& args, KernelEnv& env) {
  const int64_t tokens = args.experts.rows(), k = args.experts.cols();
  const int64_t n = args.counts.shape[0], blocks = blocks_of(args);
  const int32_t* experts = args.experts.as<int32_t>();
  int32_t* offsets = args.offsets.as<int32_t>();
  int64_t* counts = args.counts.as<int64_t>();
  int32_t* row_token = args.row_token.as<int32_t>();
  int32_t* row_slot = args.row_slot.as<int32_t>();
  int32_t* slot_row = args.slot_row.as<int32_t>();
  int32_t* next = static_cast<int32_t*>(env.workspace.data);

  for_blocks(env.pool, tokens, kBlock, [&](int64_t begin, int64_t end, int) {
    int32_t* mine = next + begin / kBlock * n;
    std::fill_n(mine, n, 0);
    for (int64_t t = begin; t < end; ++t)
      for (int64_t j = 0; j < k; ++j) {
        const int32_t e = experts[t * args.experts.stride[0] + j];
        RONDO_CHECK(e < n, "route_plan: expert {} of {}", e, n);
        if (e >= 0) ++mine[e];
      }
  });
  int32_t row = 0;
  for (int64_t e = 0; e < n; ++e) {
    offsets[e] = row;
    for (int64_t b = 0; b < blocks; ++b) {
      const int32_t count = next[b * n + e];
      next[b * n + e] = row;
      row += count;
    }
    counts[e] += row - offsets[e];
  }
  offsets[n] = row;
  for_blocks(env.pool, tokens, kBlock, [&](int64_t begin, int64_t end, int) {
    int32_t* mine = next + begin / kBlock * n;
    for (int64_t t = begin; t < end; ++t)
      for (int64_t j = 0; j < k; ++j) {
        const int32_t e = experts[t * args.experts.stride[0] + j];
        int32_t& place = slot_row[t * args.slot_row.stride[0] + j];
        place = e < 0 ? -1 : mine[e]++;
        if (e < 0) continue;
        row_token[place] = static_cast<int32_t>(t);
        row_slot[place] = static_cast<int32_t>(t * k + j);
      }
  });
  std::fill(row_token + row, row_token + tokens * k, 0);
  std::fill(row_slot + row, row_slot + tokens * k, 0);
  return "scalar";
}

}  // namespace rondo::cpu

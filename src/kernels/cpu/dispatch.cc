// Counting is of integers at scattered places; what counts in bytes are the rows that are copied.
#include "kernels/cpu/dispatch.h"

#include <algorithm>

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dispatch.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/along-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

using namespace row;

inline void Copy(const float* from, int64_t n, float* to) {
  Along(n, [&](int64_t i, auto lanes) { lanes.store(lanes.load(from + i), to + i); });
}

// Blocks of tokens know where they begin in each rank's part, so they copy on their own.
const char* Pack(const DispatchPackArgs& args, KernelEnv& env, int64_t block) {
  const int64_t tokens = args.x.rows(), k = args.experts.cols(), h = args.x.cols();
  const int64_t m = args.more ? args.more.cols() : 0, ranks = args.bounds.shape[0] - 1;
  const int32_t* bounds = args.bounds.as<int32_t>();
  const auto experts_of = [&](int64_t t) {
    return args.experts.as<int32_t>() + t * args.experts.stride[0];
  };
  struct At {
    int32_t row, copy;
  };
  At* next = static_cast<At*>(env.workspace.data);  // [blocks][ranks]
  const auto copies_on = [&](int64_t t, int64_t r) {
    const int32_t* experts = experts_of(t);
    int32_t n = 0;
    for (int64_t j = 0; j < k; ++j) n += experts[j] >= bounds[r] && experts[j] < bounds[r + 1];
    return n;
  };
  for_blocks(env.pool, tokens, block, [&](int64_t begin, int64_t end, int) {
    At* mine = next + begin / block * ranks;
    for (int64_t r = 0; r < ranks; ++r) {
      mine[r] = {0, 0};
      for (int64_t t = begin; t < end; ++t)
        if (const int32_t copies = copies_on(t, r)) {
          ++mine[r].row;
          mine[r].copy += copies;
        }
    }
  });
  At at{0, static_cast<int32_t>(args.first_copy)};
  for (int64_t r = 0; r < ranks; ++r)
    for (int64_t b = 0; b * block < tokens; ++b) {
      At& here = next[b * ranks + r];
      const At count = here;
      here = at;
      at = {at.row + count.row, at.copy + count.copy};
    }
  RONDO_CHECK(at.row == args.rows.rows(), "dispatch_pack: {} rows, not {}", at.row,
              args.rows.rows());
  for_blocks(env.pool, tokens, block, [&](int64_t begin, int64_t end, int) {
    At* mine = next + begin / block * ranks;
    for (int64_t t = begin; t < end; ++t) {
      const int32_t* experts = experts_of(t);
      const float* weights = args.weights.as<float>() + t * args.weights.stride[0];
      int32_t* slot_copy = args.slot_copy.as<int32_t>() + t * args.slot_copy.stride[0];
      std::fill_n(slot_copy, k, -1);
      for (int64_t r = 0; r < ranks; ++r) {
        if (copies_on(t, r) == 0) continue;
        float* out = args.rows.as<float>() + mine[r].row++ * args.rows.stride[0];
        Copy(args.x.as<float>() + t * args.x.stride[0], h, out);
        if (m > 0) Copy(args.more.as<float>() + t * args.more.stride[0], m, out + h);
        out += h + m;
        for (int64_t j = 0; j < k; ++j) {
          const bool here = experts[j] >= bounds[r] && experts[j] < bounds[r + 1];
          out[j] = static_cast<float>(here ? experts[j] - bounds[r] : -1);
          out[k + j] = weights[j];
          if (here) slot_copy[j] = mine[r].copy++;
        }
      }
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

const char* Return(const ReturnPackArgs& args, KernelEnv& env, int64_t block) {
  const int64_t rows = args.slot_row.rows(), k = args.slot_row.cols(), h = args.x.cols();
  const auto slots_of = [&](int64_t r) {
    return args.slot_row.as<int32_t>() + r * args.slot_row.stride[0];
  };
  int32_t* next = static_cast<int32_t*>(env.workspace.data);
  for_blocks(env.pool, rows, block, [&](int64_t begin, int64_t end, int) {
    int32_t& count = next[begin / block] = 0;
    for (int64_t r = begin; r < end; ++r)
      for (int64_t j = 0; j < k; ++j) {
        RONDO_CHECK(slots_of(r)[j] < args.x.rows(), "return_pack: row {} of {}", slots_of(r)[j],
                    args.x.rows());
        count += slots_of(r)[j] >= 0;
      }
  });
  int32_t total = 0;
  for (int64_t b = 0; b * block < rows; ++b) {
    const int32_t count = next[b];
    next[b] = total;
    total += count;
  }
  RONDO_CHECK(total == args.copies.rows(), "return_pack: {} copies, not {}", total,
              args.copies.rows());
  for_blocks(env.pool, rows, block, [&](int64_t begin, int64_t end, int) {
    int32_t copy = next[begin / block];
    for (int64_t r = begin; r < end; ++r)
      for (int64_t j = 0; j < k; ++j) {
        const int32_t from = slots_of(r)[j];
        if (from < 0) continue;
        float* out = args.copies.as<float>() + copy++ * args.copies.stride[0];
        Copy(args.x.as<float>() + from * args.x.stride[0], h, out);
        if (args.extra) out[h] = args.extra.as<float>()[from];
      }
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {

HWY_EXPORT(Pack);
HWY_EXPORT(Return);
constexpr int64_t kBlock = 64;  // tokens or rows of one task

int64_t blocks(int64_t n) {
  return (n + kBlock - 1) / kBlock;
}

}  // namespace

const char* dispatch_count(const DispatchCountArgs& args, KernelEnv& env) {
  const int64_t ranks = args.bounds.shape[0] - 1, k = args.experts.cols();
  const int32_t* bounds = args.bounds.as<int32_t>();
  for_blocks(env.pool, args.experts.rows(), args.tile, [&](int64_t begin, int64_t end, int) {
    int32_t* counts = args.counts.as<int32_t>() + begin / args.tile * ranks * 2;
    std::fill_n(counts, ranks * 2, 0);
    for (int64_t t = begin; t < end; ++t) {
      const int32_t* experts = args.experts.as<int32_t>() + t * args.experts.stride[0];
      for (int64_t r = 0; r < ranks; ++r) {
        int32_t copies = 0;
        for (int64_t j = 0; j < k; ++j)
          copies += experts[j] >= bounds[r] && experts[j] < bounds[r + 1];
        counts[2 * r] += copies > 0;
        counts[2 * r + 1] += copies;
      }
    }
  });
  return "scalar";
}

const char* dispatch_unpack(const DispatchUnpackArgs& args, KernelEnv& env) {
  const int64_t k = args.experts.cols(), first = args.rows.cols() - 2 * k;
  for_blocks(env.pool, args.rows.rows(), 256, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* from = args.rows.as<float>() + r * args.rows.stride[0] + first;
      int32_t* experts = args.experts.as<int32_t>() + r * args.experts.stride[0];
      float* weights = args.weights.as<float>() + r * args.weights.stride[0];
      for (int64_t j = 0; j < k; ++j) {
        experts[j] = static_cast<int32_t>(from[j]);
        weights[j] = from[k + j];
      }
    }
  });
  return "scalar";
}

int64_t dispatch_pack_workspace(const DispatchPackArgs& args, int) {
  return blocks(args.x.rows()) * (args.bounds.shape[0] - 1) * 2 *
         static_cast<int64_t>(sizeof(int32_t));
}
const char* dispatch_pack(const DispatchPackArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Pack)(args, env, kBlock);
}

int64_t return_pack_workspace(const ReturnPackArgs& args, int) {
  return blocks(args.slot_row.rows()) * static_cast<int64_t>(sizeof(int32_t));
}
const char* return_pack(const ReturnPackArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Return)(args, env, kBlock);
}

}  // namespace rondo::cpu
#endif

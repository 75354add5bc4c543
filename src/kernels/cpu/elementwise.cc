#include "kernels/cpu/elementwise.h"

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/along-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

using namespace row;

// What a block of one task holds at least: below that a thread is not worth its call.
constexpr int64_t kBlockElements = 16 << 10;

// Calls body(x row, y row, columns) for all rows of views of one shape. Dense ones are one row,
// cut where a task is large enough.
template <class Body>
void EachRow(ThreadPool& pool, const View& x, const View& y, Body body) {
  const float* from = static_cast<const float*>(x.data);
  float* to = static_cast<float*>(y.data);
  if (x.is_dense() && y.is_dense()) {
    for_blocks(pool, x.elements(), kBlockElements, [&](int64_t begin, int64_t end, int) {
      body(from + begin, to + begin, end - begin);
    });
    return;
  }
  const int64_t n = x.shape[static_cast<size_t>(x.rank - 1)];
  const int64_t inner = x.rank >= 2 ? x.shape[static_cast<size_t>(x.rank - 2)] : 1;
  const int64_t outer = x.rank == 3 ? x.shape[0] : 1;
  const auto row_at = [&](const View& v, int64_t r) {
    const int64_t step = v.rank >= 2 ? v.stride[static_cast<size_t>(v.rank - 2)] : 0;
    return (v.rank == 3 ? r / inner * v.stride[0] : 0) + r % inner * step;
  };
  const int64_t block = std::max<int64_t>(1, kBlockElements / std::max<int64_t>(n, 1));
  for_blocks(pool, inner * outer, block, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) body(from + row_at(x, r), to + row_at(y, r), n);
  });
}

const char* Fill(const FillArgs& args, KernelEnv& env) {
  const V value = hn::Set(D(), args.value);
  EachRow(env.pool, args.y, args.y, [&](const float*, float* y, int64_t n) {
    Along(n, [&](int64_t i, auto lanes) { lanes.store(value, y + i); });
  });
  return hwy::TargetName(HWY_TARGET);
}

const char* Axpby(const AxpbyArgs& args, KernelEnv& env) {
  const V alpha = hn::Set(D(), args.alpha), beta = hn::Set(D(), args.beta);
  EachRow(env.pool, args.x, args.y, [&](const float* x, float* y, int64_t n) {
    if (args.beta == 0)
      Along(n,
            [&](int64_t i, auto lanes) { lanes.store(hn::Mul(alpha, lanes.load(x + i)), y + i); });
    else
      Along(n, [&](int64_t i, auto lanes) {
        const V scaled = hn::Mul(alpha, lanes.load(x + i));
        lanes.store(hn::MulAdd(beta, lanes.load(y + i), scaled), y + i);
      });
  });
  return hwy::TargetName(HWY_TARGET);
}

// The random words are the cost; four features share one call.
const char* Dropout(const DropoutArgs& args, KernelEnv& env) {
  const int64_t n = args.x.cols();
  const float scale = 1 / (1 - args.p);
  for_blocks(env.pool, args.x.rows(), 8, [&](int64_t begin, int64_t end, int) {
    constexpr int64_t kChunk = 256;
    float keep[kChunk];
    for (int64_t t = begin; t < end; ++t) {
      const int32_t* place = args.places.as<int32_t>() + t * args.places.stride[0];
      const uint64_t token = (static_cast<uint64_t>(static_cast<uint32_t>(place[0])) << 32) |
                             static_cast<uint32_t>(place[1]);
      const float* x = args.x.as<float>() + t * args.x.stride[0];
      float* y = args.y.as<float>() + t * args.y.stride[0];
      for (int64_t first = 0; first < n; first += kChunk) {
        const int64_t count = std::min(kChunk, n - first);
        for (int64_t i = 0; i < count; i += 4) {
          const auto words = philox({args.seed, RandomUse::kDropout}, token,
                                    static_cast<uint64_t>((first + i) / 4));
          for (size_t j = 0; j < 4; ++j)
            keep[i + static_cast<int64_t>(j)] = uniform01(words[j]) >= args.p ? scale : 0.0f;
        }
        Along(count, [&](int64_t i, auto lanes) {
          const V k = lanes.load(keep + i);
          const V product = hn::Mul(lanes.load(x + first + i), k);
          lanes.store(hn::IfThenZeroElse(hn::Eq(k, hn::Zero(D())), product), y + first + i);
        });
      }
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Fill);
HWY_EXPORT(Axpby);
HWY_EXPORT(Dropout);
}  // namespace

const char* fill(const FillArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Fill)(args, env);
}

const char* axpby(const AxpbyArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Axpby)(args, env);
}

const char* dropout(const DropoutArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Dropout)(args, env);
}

}  // namespace rondo::cpu
#endif

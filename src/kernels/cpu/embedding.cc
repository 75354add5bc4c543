#include "kernels/cpu/embedding.h"

#include "kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/along-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

using namespace row;

inline int64_t IdOf(const View& ids, int64_t t, int64_t vocabulary) {
  const int32_t id = ids.as<int32_t>()[t];
  RONDO_CHECK(id >= 0 && id < vocabulary, "embedding: id {} of {}", id, vocabulary);
  return id;
}

const char* Forward(const EmbeddingArgs& args, KernelEnv& env) {
  const int64_t n = args.y.cols();
  for_blocks(env.pool, args.y.rows(), 32, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      const float* from =
          args.table.as<float>() + IdOf(args.ids, t, args.table.rows()) * args.table.stride[0];
      float* y = args.y.as<float>() + t * args.y.stride[0];
      Along(n, [&](int64_t i, auto lanes) { lanes.store(lanes.load(from + i), y + i); });
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

// A task owns some columns of every row, so tokens of one id are added in order without locks.
const char* Backward(const EmbeddingBackwardArgs& args, KernelEnv& env) {
  const int64_t tokens = args.dy.rows();
  for_blocks(env.pool, args.dy.cols(), 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = 0; t < tokens; ++t) {
      const float* dy = args.dy.as<float>() + t * args.dy.stride[0] + begin;
      float* to = args.d_table.as<float>() +
                  IdOf(args.ids, t, args.d_table.rows()) * args.d_table.stride[0] + begin;
      Along(end - begin, [&](int64_t i, auto lanes) {
        lanes.store(hn::Add(lanes.load(to + i), lanes.load(dy + i)), to + i);
      });
    }
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Forward);
HWY_EXPORT(Backward);
}  // namespace

const char* embedding(const EmbeddingArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Forward)(args, env);
}

const char* embedding_backward(const EmbeddingBackwardArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Backward)(args, env);
}

}  // namespace rondo::cpu
#endif

#include "kernels/cpu/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/gemm_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

const char* Gemm(const GemmArgs& args, KernelEnv& env) {
  const int64_t m = args.m(), n = args.n(), k = args.k();
  const Operand a{args.a.as<float>(), args.a.stride[0], nullptr, args.form != GemmArgs::Form::kTN};
  const Operand b{args.b.as<float>(), args.b.stride[0], nullptr, args.form == GemmArgs::Form::kNT};
  float* c = args.c.as<float>();
  const Tiling tiling = tiling_of(m, n, k);
  const Space space(env.workspace, tile_floats(m, n, k));
  // Tiles of one block of rows follow each other, so that threads share those rows in the cache.
  env.pool.run(tiling.rows.parts * tiling.cols.parts, [&](int64_t task, int worker) {
    const int64_t i = task / tiling.cols.parts, j = task % tiling.cols.parts;
    MultiplyTile(a, b, tiling.rows.begin(i), tiling.rows.end(i), tiling.cols.begin(j),
                 tiling.cols.end(j), 0, k, c, args.c.stride[0], args.accumulate, space.of(worker));
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(Gemm);
}  // namespace

const char* gemm(const GemmArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(Gemm)(args, env);
}

int64_t gemm_workspace(const GemmArgs& args, int threads) {
  return Space::bytes(tile_floats(args.m(), args.n(), args.k()), threads);
}

}  // namespace rondo::cpu
#endif

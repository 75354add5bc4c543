#include "kernels/cpu/grouped_gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/grouped_gemm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/gemm_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rondo::cpu::HWY_NAMESPACE {

const int32_t* RowsOf(const View& rows) {
  return rows ? rows.as<int32_t>() : nullptr;
}

// Every group is cut into tiles of at most the same number of rows, so a crowded group gives more
// tasks, not longer ones.
const char* GroupedGemm(const GroupedGemmArgs& args, KernelEnv& env) {
  const int64_t groups = args.groups(), n = args.n(), k = args.k();
  const bool turned = args.form == GroupedGemmArgs::Form::kNT;
  const int32_t* offsets = args.offsets.as<int32_t>();
  const Operand a{args.a.as<float>(), args.a.stride[0], RowsOf(args.a_rows), true};
  const float* weights = args.b.as<float>();
  float* c = args.c.as<float>();
  const Tiling tiling = tiling_of(args.c.rows(), n, k);
  const Space space(env.workspace, tile_floats(args.c.rows(), n, k), list_bytes(groups));

  const auto cut = [&](int64_t group) {
    return Cut(offsets[group + 1] - offsets[group], tiling.rows.length, kRowStep);
  };
  int32_t* first = static_cast<int32_t*>(env.workspace.data);  // task of each group
  first[0] = 0;
  for (int64_t e = 0; e < groups; ++e)
    first[e + 1] = first[e] + static_cast<int32_t>(cut(e).parts * tiling.cols.parts);
  env.pool.run(first[groups], [&](int64_t task, int worker) {
    const int64_t e = std::upper_bound(first, first + groups + 1, task) - first - 1;
    const Cut rows = cut(e);
    const int64_t i = (task - first[e]) / tiling.cols.parts,
                  j = (task - first[e]) % tiling.cols.parts;
    const Operand b{weights + e * args.b.stride[0], args.b.stride[1], nullptr, turned};
    MultiplyTile(a, b, offsets[e] + rows.begin(i), offsets[e] + rows.end(i), tiling.cols.begin(j),
                 tiling.cols.end(j), 0, k, c, args.c.stride[0], false, space.of(worker));
  });
  return hwy::TargetName(HWY_TARGET);
}

// A task has one tile of one matrix and all rows of the group, in order. Crowded groups go first:
// what is left to the end is short.
const char* GroupedWgrad(const GroupedWgradArgs& args, KernelEnv& env) {
  const int64_t groups = args.groups(), n = args.n(), k = args.k();
  const int32_t* offsets = args.offsets.as<int32_t>();
  const Operand a{args.a.as<float>(), args.a.stride[0], RowsOf(args.a_rows), false};
  const Operand b{args.b.as<float>(), args.b.stride[0], RowsOf(args.b_rows), false};
  float* c = args.c.as<float>();
  // A group may have a few times its share before its tasks get too long for the other threads.
  const int64_t share = args.rows() / std::max<int64_t>(groups, 1);
  const Tiling tiling = tiling_of(n, k, std::min(args.rows(), 4 * share));
  const Space space(env.workspace, tile_floats(n, k, args.rows()), list_bytes(groups));

  int32_t* order = static_cast<int32_t*>(env.workspace.data);
  for (int64_t e = 0; e < groups; ++e) order[e] = static_cast<int32_t>(e);
  std::sort(order, order + groups, [&](int32_t x, int32_t y) {
    const int32_t rows_x = offsets[x + 1] - offsets[x], rows_y = offsets[y + 1] - offsets[y];
    return rows_x != rows_y ? rows_x > rows_y : x < y;
  });
  const int64_t tiles = tiling.rows.parts * tiling.cols.parts;
  env.pool.run(groups * tiles, [&](int64_t task, int worker) {
    const int64_t e = order[task / tiles], i = task % tiles / tiling.cols.parts,
                  j = task % tiling.cols.parts;
    MultiplyTile(a, b, tiling.rows.begin(i), tiling.rows.end(i), tiling.cols.begin(j),
                 tiling.cols.end(j), offsets[e], offsets[e + 1], c + e * args.c.stride[0],
                 args.c.stride[1], args.accumulate, space.of(worker));
  });
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace rondo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::cpu {
namespace {
HWY_EXPORT(GroupedGemm);
HWY_EXPORT(GroupedWgrad);
}  // namespace

const char* grouped_gemm(const GroupedGemmArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(GroupedGemm)(args, env);
}

int64_t grouped_gemm_workspace(const GroupedGemmArgs& args, int threads) {
  return Space::bytes(tile_floats(args.c.rows(), args.n(), args.k()), threads,
                      list_bytes(args.groups()));
}

const char* grouped_wgrad(const GroupedWgradArgs& args, KernelEnv& env) {
  return HWY_DYNAMIC_DISPATCH(GroupedWgrad)(args, env);
}

int64_t grouped_wgrad_workspace(const GroupedWgradArgs& args, int threads) {
  return Space::bytes(tile_floats(args.n(), args.k(), args.rows()), threads,
                      list_bytes(args.groups()));
}

}  // namespace rondo::cpu
#endif

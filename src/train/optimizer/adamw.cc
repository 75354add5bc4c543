#include "train/optimizer/adamw.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops/adamw.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/reduce.h"

namespace rondo {

Optimizer::Optimizer(Context& ctx, const Model& model, const AdamWOptions& options)
    : ctx_(ctx), model_(model), options_(options) {
  const int64_t flat = model.table().flat_elements();
  for (Tensor* moment : {&m_, &v_}) {
    *moment = ctx.allocate(MemoryClass::kOptimizer, DType::kF32, {flat});
    launch(ctx, FillArgs{*moment, 0});
  }
  sums_ = ctx.allocate(MemoryClass::kWorkspace, DType::kF64, {2});

  std::vector<Parameter> rows;
  for (const Parameter& row : model.table().rows())
    if (!row.alias) rows.push_back(row);
  std::sort(rows.begin(), rows.end(),
            [](const Parameter& a, const Parameter& b) { return a.offset < b.offset; });
  // Neighbours of one rule become one launch; the gaps between them hold zeros and stay zero.
  bool joins = false;
  for (const Parameter& row : rows) {
    if (!row.trained) {
      joins = false;
      continue;
    }
    const int64_t end = row.offset + row.elements();
    if (joins && ranges_.back().decay == row.decay)
      ranges_.back().end = end;
    else
      ranges_.push_back({row.offset, end, row.decay});
    joins = true;
  }
}

double Optimizer::gradient_norm() {
  const View gradients = model_.gradients();
  const int64_t experts = std::min(model_.table().expert_begin(), gradients.shape[0]);
  const auto add = [&](const View& part, int64_t slot) {
    if (part.elements() > 0)
      launch(ctx_, ReduceArgs{part, sums_.view().slice(0, slot, slot + 1),
                              ReduceArgs::Kind::kSumSquares});
  };
  launch(ctx_, FillArgs{sums_, 0});
  add(gradients.slice(0, 0, experts), 0);
  add(gradients.slice(0, experts, gradients.shape[0]), 1);
  // What is not of experts is the same on every rank and counts once; experts are each rank's own.
  if (Communicator* ranks = model_.groups().expert)
    ranks->all_reduce(*ctx_.stream, sums_.view().slice(0, 1, 2), Reduction::kSum)
        .wait(*ctx_.stream, "train.norm.experts");
  double sums[2] = {0, 0};
  copy(*ctx_.stream, View(sums, DType::kF64, Memory::kHost, {2}), sums_);
  ctx_.stream->synchronize("train.norm");
  return std::sqrt(sums[0] + sums[1]);
}

double Optimizer::clip_scale(double norm) const {
  return options_.clip_norm > 0 ? std::min(1.0, options_.clip_norm / (norm + 1e-6)) : 1;
}

void Optimizer::update(double learning_rate, double grad_scale, int64_t step) {
  for (const Range& range : ranges_) {
    const auto part = [&](const View& flat) { return flat.slice(0, range.begin, range.end); };
    launch(ctx_, AdamWArgs{.p = part(model_.weights()),
                           .m = part(m_),
                           .v = part(v_),
                           .grad = part(model_.gradients()),
                           .lr = learning_rate,
                           .beta1 = options_.beta1,
                           .beta2 = options_.beta2,
                           .eps = options_.eps,
                           .weight_decay = range.decay ? options_.weight_decay : 0,
                           .grad_scale = grad_scale,
                           .step = step});
  }
}

void Optimizer::update_router_bias(double rate) {
  if (rate == 0) return;
  for (const Model::ExpertCounts& layer : model_.expert_counts())
    if (layer.bias)
      launch(ctx_, RouterBiasArgs{layer.counts, layer.bias, static_cast<float>(rate)});
}

}  // namespace rondo

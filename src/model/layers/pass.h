// What every layer sees of one micro-batch, and the few lines that all of them share.
#pragma once

#include <functional>
#include <string>

#include "kernels/ops/elementwise.h"
#include "kernels/ops/gemm.h"
#include "kernels/ops/rms_norm.h"
#include "memory/saved.h"
#include "model/config.h"
#include "model/model.h"
#include "model/parameters.h"
#include "parallel/expert_dispatch.h"
#include "parallel/groups.h"
#include "parallel/ring_attention.h"

namespace rondo {

// Weights and their gradients by name.
struct Weights {
  const ParameterTable& table;
  View weights, gradients;  // flat; gradients null when not training
  View operator()(const std::string& name) const { return table.view(weights, name); }
  View grad(const std::string& name) const {
    return gradients ? table.view(gradients, name) : View();
  }
  bool has(const std::string& name) const { return table.find(name) != nullptr; }
};

// A weight with the gradient that belongs to it.
struct Weight {
  View w, grad;
  Weight() = default;
  Weight(const Weights& all, const std::string& name) : w(all(name)), grad(all.grad(name)) {}
  explicit operator bool() const { return bool(w); }
};

struct Pass {
  Context& ctx;
  const ModelConfig& config;
  const ModelOptions& options;
  Saved& saved;
  int64_t micro_batch = 0, step = 0;
  bool training = false;

  // The tokens of this micro-batch; an MTP layer has its own places (invalid positions are
  // padding).
  int64_t tokens = 0, documents = 0;
  View places;    // i32 [T, 4]
  View cos, sin;  // [T, rope_dim / 2]

  const RankGroups& groups;
  ExpertDispatch* dispatch;  // null where every rank has all experts
  const RingPlan& ring;  // of this micro-batch on the context axis; of one rank where that is null

  // What a routed layer multiplies its sums by: weight / tokens of the global batch.
  double balance_scale = 0, z_scale = 0;
  View router_losses;  // [2]: balance, z; added to

  // Null but when a failed run looks for its first bad tensor.
  std::function<void(int64_t layer, const std::string& what, const View& view)> probe;

  Tensor activation(std::initializer_list<int64_t> shape) const { return ctx.activation(shape); }
  void save(int64_t layer, SavedClass c, std::string_view name, Tensor tensor) const {
    saved.save(micro_batch, layer, c, name, std::move(tensor));
  }
  View fetch(int64_t layer, std::string_view name) const {
    return saved.fetch(micro_batch, layer, name);
  }
  void look(int64_t layer, const char* what, const View& view) const {
    if (probe) probe(layer, what, view);
  }
};

// y = x w^T; dx (+)= dy w; dw += dy^T x. x [T, in], w [out, in].
inline void linear(Context& ctx, const View& x, const View& w, const View& y) {
  launch(ctx, GemmArgs{x, w, y, GemmArgs::Form::kNT});
}
inline void linear_backward_input(Context& ctx, const View& dy, const View& w, const View& dx,
                                  bool accumulate = false) {
  launch(ctx, GemmArgs{dy, w, dx, GemmArgs::Form::kNN, accumulate});
}
inline void linear_backward_weight(Context& ctx, const View& dy, const View& x, const View& dw) {
  launch(ctx, GemmArgs{dy, x, dw, GemmArgs::Form::kTN, true});
}

inline void copy_rows(Context& ctx, const View& x, const View& y) {
  launch(ctx, AxpbyArgs{x, y, 1, 0});
}
inline void add_to(Context& ctx, const View& x, const View& y) {
  launch(ctx, AxpbyArgs{x, y, 1, 1});
}

inline void norm(const Pass& pass, const View& x, const Weight& w, const View& y,
                 const View& inv_rms, double eps) {
  launch(pass.ctx,
         RmsNormArgs{.x = x, .w = w.w, .y = y, .inv_rms = inv_rms, .eps = static_cast<float>(eps)});
}
inline void norm(const Pass& pass, const View& x, const Weight& w, const View& y,
                 const View& inv_rms) {
  norm(pass, x, w, y, inv_rms, pass.config.rms_norm_eps);
}
inline void norm_backward(const Pass& pass, const View& x, const Weight& w, const View& inv_rms,
                          const View& dy, const View& dx, bool accumulate_dx = false) {
  launch(pass.ctx, RmsNormBackwardArgs{x, w.w, inv_rms, dy, dx, w.grad, accumulate_dx});
}

// [T, heads * d] as [T, heads, d]; rows may have gaps.
inline View as_heads(const View& matrix, int64_t heads) {
  View v = matrix;
  v.rank = 3;
  v.shape = {matrix.rows(), heads, matrix.cols() / heads};
  v.stride = {matrix.row_stride(), v.shape[2], 1};
  return v;
}

}  // namespace rondo

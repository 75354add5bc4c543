#include "kernels/ops/grouped_gemm.h"
#include "kernels/ops/route.h"
#include "kernels/ops/swiglu.h"
#include "model/layers/experts.h"

namespace rondo {
namespace {

class LocalExperts : public Experts {
 public:
  LocalExperts(const ExpertShape& shape, const Weight& gate_up, const Weight& down)
      : shape_(shape), layer_(shape.layer), gate_up_(gate_up), down_(down) {}

  void begin(const Pass& pass, const View& h, const View& chosen, const View& weights) override {
    Context& ctx = pass.ctx;
    const int64_t t = pass.tokens, rows = t * shape_.k;
    Tensor offsets = ctx.activation({shape_.experts + 1}, DType::kI32);
    Tensor row_token = ctx.activation({rows}, DType::kI32);
    Tensor row_slot = ctx.activation({rows}, DType::kI32);
    Tensor slot_row = ctx.activation({t, shape_.k}, DType::kI32);
    launch(ctx, RoutePlanArgs{chosen, offsets, shape_.counts, row_token, row_slot, slot_row});

    Tensor gate_up = pass.activation({rows, 2 * shape_.inner});
    const Tensor act = pass.activation({rows, shape_.inner});
    out_ = pass.activation({rows, h.cols()});
    launch(ctx, GroupedGemmArgs{h, row_token, gate_up_.w, offsets, gate_up});
    launch(ctx, SwigluArgs{gate_up, act, weights.reshape({rows}), row_slot, offsets});
    launch(ctx, GroupedGemmArgs{act, View(), down_.w, offsets, out_});

    pass.save(layer_, SavedClass::kGateUp, "moe.gate_up", std::move(gate_up));
    pass.save(layer_, SavedClass::kRouting, "offsets", std::move(offsets));
    pass.save(layer_, SavedClass::kRouting, "row_token", std::move(row_token));
    pass.save(layer_, SavedClass::kRouting, "row_slot", std::move(row_slot));
    slot_row_ = std::move(slot_row);
  }

  void finish(const Pass& pass, const View&, const View& addend, const View& y) override {
    launch(pass.ctx, CombineArgs{out_, slot_row_, addend, y});
    out_ = Tensor();
    pass.save(layer_, SavedClass::kRouting, "slot_row", std::move(slot_row_));
  }

  CopyGradients backward_input(const Pass& pass, const View&, const View& dy, const View& addend,
                               const View& dh) override {
    Context& ctx = pass.ctx;
    const int64_t rows = pass.tokens * shape_.k;
    const View gate_up = pass.fetch(layer_, "moe.gate_up");
    const View offsets = pass.fetch(layer_, "offsets"), slot_row = pass.fetch(layer_, "slot_row");
    Tensor act = pass.activation({rows, shape_.inner}), d_weight = pass.activation({rows});
    const Tensor d_rows = pass.activation({rows, dy.cols()});
    launch(ctx, GroupedGemmArgs{dy, pass.fetch(layer_, "row_token"), down_.w, offsets, act,
                                GroupedGemmArgs::Form::kNN});
    // In place: the gradient of the activation becomes the activation, gate and up their gradient.
    launch(ctx, SwigluBackwardArgs{.x = gate_up,
                                   .dy = act,
                                   .dx = gate_up,
                                   .y = act,
                                   .weights = pass.fetch(layer_, "weights").reshape({rows}),
                                   .row_slot = pass.fetch(layer_, "row_slot"),
                                   .d_row_weight = d_weight,
                                   .offsets = offsets});
    launch(ctx, GroupedGemmArgs{gate_up, View(), gate_up_.w, offsets, d_rows,
                                GroupedGemmArgs::Form::kNN});
    launch(ctx, CombineArgs{d_rows, slot_row, addend, dh});
    const View d = d_weight;
    pass.save(layer_, SavedClass::kGradient, "moe.act", std::move(act));
    pass.save(layer_, SavedClass::kGradient, "moe.d_weight", std::move(d_weight));
    return {slot_row, d};
  }

  void backward_weight(const Pass& pass, const View& h, const View& dy) override {
    const View row_token = pass.fetch(layer_, "row_token"), offsets = pass.fetch(layer_, "offsets");
    launch(pass.ctx, GroupedWgradArgs{dy, row_token, pass.fetch(layer_, "moe.act"), View(), offsets,
                                      down_.grad});
    launch(pass.ctx, GroupedWgradArgs{pass.fetch(layer_, "moe.gate_up"), View(), h, row_token,
                                      offsets, gate_up_.grad});
  }

 private:
  const ExpertShape shape_;
  const int64_t layer_;
  const Weight gate_up_, down_;
  Tensor out_, slot_row_;  // between begin() and finish()
};

}  // namespace

std::unique_ptr<Experts> make_local_experts(const ExpertShape& shape, const Weight& gate_up,
                                            const Weight& down) {
  return std::make_unique<LocalExperts>(shape, gate_up, down);
}

}  // namespace rondo

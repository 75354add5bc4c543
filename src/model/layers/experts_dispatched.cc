#include <map>

#include "kernels/ops/dispatch.h"
#include "kernels/ops/grouped_gemm.h"
#include "kernels/ops/route.h"
#include "kernels/ops/swiglu.h"
#include "model/layers/experts.h"
#include "parallel/expert_dispatch.h"

namespace rondo {
namespace {

class DispatchedExperts : public Experts {
 public:
  DispatchedExperts(const ExpertShape& shape, const Weight& gate_up, const Weight& down)
      : shape_(shape), layer_(shape.layer), gate_up_(gate_up), down_(down) {}

  void begin(const Pass& pass, const View&, const View& chosen, const View& weights) override {
    count(pass, chosen);
    pass.dispatch->begin(chosen);
    chosen_ = chosen;
    weights_ = weights;
  }

  void finish(const Pass& pass, const View& h, const View& addend, const View& y) override {
    routings_[pass.micro_batch] = pass.dispatch->finish();
    Routing& routing = *routings_[pass.micro_batch];
    const Tensor returned = pass.activation({routing.copies(), h.cols()});
    pass.dispatch->run(
        routing, h, View(), chosen_, weights_, returned,
        [&](const ArrivedWave& wave, const View& copies) { forward_rows(pass, wave, copies); });
    launch(pass.ctx, CombineArgs{returned, routing.slot_copy(), addend, y});
  }

  CopyGradients backward_input(const Pass& pass, const View& h, const View& dy, const View& addend,
                               const View& dh) override {
    Context& ctx = pass.ctx;
    Routing& routing = *routings_.at(pass.micro_batch);
    const int64_t width = h.cols(), copies = routing.copies();
    const Tensor returned = pass.activation({copies, width + 1});
    pass.dispatch->run(
        routing, h, dy, pass.fetch(layer_, "chosen"), pass.fetch(layer_, "weights"), returned,
        [&](const ArrivedWave& wave, const View& out) { backward_rows(pass, wave, out); });
    launch(ctx, CombineArgs{returned.view().slice(1, 0, width), routing.slot_copy(), addend, dh});
    Tensor d_weight = pass.activation({copies});
    const View d = d_weight;
    launch(ctx, AxpbyArgs{returned.view().slice(1, width, width + 1), d.reshape({copies, 1})});
    pass.save(layer_, SavedClass::kGradient, "moe.d_weight", std::move(d_weight));
    return {routing.slot_copy(), d};
  }

  // Rows only visit: their weights' gradients are in already.
  void backward_weight(const Pass& pass, const View&, const View&) override {
    routings_.erase(pass.micro_batch);
  }

 private:
  // A wave's rows sorted by expert.
  struct Group {
    Group(const Pass& pass, const ArrivedWave& wave, int64_t experts)
        : offsets(pass.ctx.activation({experts + 1}, DType::kI32)),
          row_token(pass.ctx.activation({wave.experts.elements()}, DType::kI32)),
          row_slot(pass.ctx.activation({wave.experts.elements()}, DType::kI32)),
          slot_row(pass.ctx.activation({wave.experts.rows(), wave.experts.cols()}, DType::kI32)) {
      const Tensor counts = pass.ctx.activation({experts}, DType::kI64);
      launch(pass.ctx, FillArgs{counts, 0});
      launch(pass.ctx, RoutePlanArgs{wave.experts, offsets, counts, row_token, row_slot, slot_row});
      rows = row_token.view().slice(0, 0, wave.copies);
      slots = row_slot.view().slice(0, 0, wave.copies);
    }
    Tensor offsets, row_token, row_slot, slot_row;
    View rows, slots;  // of the copies alone
  };

  // Tokens of each expert, for metrics and the router's bias: where the tokens are.
  void count(const Pass& pass, const View& chosen) const {
    Context& ctx = pass.ctx;
    const int64_t slots = chosen.elements();
    const Tensor offsets = ctx.activation({shape_.experts + 1}, DType::kI32);
    const Tensor row_token = ctx.activation({slots}, DType::kI32);
    const Tensor row_slot = ctx.activation({slots}, DType::kI32);
    const Tensor slot_row = ctx.activation({chosen.rows(), chosen.cols()}, DType::kI32);
    launch(ctx, RoutePlanArgs{chosen, offsets, shape_.counts, row_token, row_slot, slot_row});
  }

  static View flat(const View& weights) { return weights.reshape({weights.elements()}); }

  Tensor gate_up_rows(const Pass& pass, const ArrivedWave& wave, const Group& group) const {
    Tensor inner = pass.activation({wave.copies, 2 * shape_.inner});
    launch(pass.ctx, GroupedGemmArgs{wave.x, group.rows, gate_up_.w, group.offsets, inner});
    return inner;
  }

  void forward_rows(const Pass& pass, const ArrivedWave& wave, const View& copies) const {
    const Group group(pass, wave, gate_up_.w.shape[0]);
    const Tensor gate_up = gate_up_rows(pass, wave, group);
    const Tensor act = pass.activation({wave.copies, shape_.inner});
    const Tensor out = pass.activation({wave.copies, wave.x.cols()});
    launch(pass.ctx, SwigluArgs{gate_up, act, flat(wave.weights), group.slots, group.offsets});
    launch(pass.ctx, GroupedGemmArgs{act, View(), down_.w, group.offsets, out});
    launch(pass.ctx, ReturnPackArgs{out, View(), group.slot_row, copies});
  }

  void backward_rows(const Pass& pass, const ArrivedWave& wave, const View& copies) const {
    Context& ctx = pass.ctx;
    const Group group(pass, wave, gate_up_.w.shape[0]);
    const Tensor gate_up = gate_up_rows(pass, wave, group);
    const Tensor act = pass.activation({wave.copies, shape_.inner});
    const Tensor d_weight = pass.activation({wave.copies});
    const Tensor d_rows = pass.activation({wave.copies, wave.x.cols()});
    launch(ctx, GroupedGemmArgs{wave.more, group.rows, down_.w, group.offsets, act,
                                GroupedGemmArgs::Form::kNN});
    launch(ctx, SwigluBackwardArgs{.x = gate_up,
                                   .dy = act,
                                   .dx = gate_up,
                                   .y = act,
                                   .weights = flat(wave.weights),
                                   .row_slot = group.slots,
                                   .d_row_weight = d_weight,
                                   .offsets = group.offsets});
    launch(ctx, GroupedGemmArgs{gate_up, View(), gate_up_.w, group.offsets, d_rows,
                                GroupedGemmArgs::Form::kNN});
    launch(ctx, GroupedWgradArgs{wave.more, group.rows, act, View(), group.offsets, down_.grad});
    launch(ctx,
           GroupedWgradArgs{gate_up, View(), wave.x, group.rows, group.offsets, gate_up_.grad});
    launch(ctx, ReturnPackArgs{d_rows, d_weight, group.slot_row, copies});
  }

  const ExpertShape shape_;
  const int64_t layer_;
  const Weight gate_up_, down_;
  View chosen_, weights_;                                 // between begin() and finish()
  std::map<int64_t, std::unique_ptr<Routing>> routings_;  // by micro-batch, until backward is done
};

}  // namespace

std::unique_ptr<Experts> make_dispatched_experts(const ExpertShape& shape, const Weight& gate_up,
                                                 const Weight& down) {
  return std::make_unique<DispatchedExperts>(shape, gate_up, down);
}

}  // namespace rondo

// The dense feed-forward part, also of shared experts.
#include "kernels/ops/swiglu.h"
#include "model/layers/sublayer.h"

namespace rondo {
namespace {

class Mlp : public Sublayer {
 public:
  Mlp(const Weights& weights, const std::string& prefix, int64_t layer, int64_t inner)
      : layer_(layer),
        inner_(inner),
        gate_up_(weights, prefix + ".gate_up"),
        down_(weights, prefix + ".down_proj.weight") {}

  void forward(const Pass& pass, const View& h, const View& y) override {
    Tensor gate_up = pass.activation({pass.tokens, 2 * inner_});
    const Tensor act = pass.activation({pass.tokens, inner_});
    linear(pass.ctx, h, gate_up_.w, gate_up);
    launch(pass.ctx, SwigluArgs{.x = gate_up, .y = act});
    linear(pass.ctx, act, down_.w, y);
    pass.save(layer_, SavedClass::kGateUp, "mlp.gate_up", std::move(gate_up));
  }

  void backward_input(const Pass& pass, const View&, const View& dy, const View& dh) override {
    const View gate_up = pass.fetch(layer_, "mlp.gate_up");
    Tensor act = pass.activation({pass.tokens, inner_});
    linear_backward_input(pass.ctx, dy, down_.w, act);
    // In place: the gradient of the activation becomes the activation, gate and up their gradient.
    launch(pass.ctx, SwigluBackwardArgs{.x = gate_up, .dy = act, .dx = gate_up, .y = act});
    linear_backward_input(pass.ctx, gate_up, gate_up_.w, dh);
    pass.save(layer_, SavedClass::kGradient, "mlp.act", std::move(act));
  }

  void backward_weight(const Pass& pass, const View& h, const View& dy) override {
    linear_backward_weight(pass.ctx, dy, pass.fetch(layer_, "mlp.act"), down_.grad);
    linear_backward_weight(pass.ctx, pass.fetch(layer_, "mlp.gate_up"), h, gate_up_.grad);
  }

 private:
  const int64_t layer_, inner_;
  const Weight gate_up_, down_;
};

}  // namespace

std::unique_ptr<Sublayer> make_mlp(const Weights& weights, const std::string& prefix, int64_t layer,
                                   int64_t inner) {
  return std::make_unique<Mlp>(weights, prefix, layer, inner);
}

}  // namespace rondo

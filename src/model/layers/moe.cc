// Routed experts on ragged groups of rows, with shared experts beside them (DeepSeekMoE,
// arXiv 2401.06066). Dropless: every copy of every token has a row; nothing has a capacity.
#include "kernels/ops/grouped_gemm.h"
#include "kernels/ops/route.h"
#include "kernels/ops/router.h"
#include "kernels/ops/router_loss.h"
#include "kernels/ops/swiglu.h"
#include "model/layers/sublayer.h"

namespace rondo {
namespace {

RouterRule rule_of(const ModelConfig& config) {
  return {.scoring =
              config.sigmoid_scores ? RouterRule::Scoring::kSigmoid : RouterRule::Scoring::kSoftmax,
          .k = static_cast<int32_t>(config.num_experts_per_tok),
          .n_group = static_cast<int32_t>(config.n_group),
          .topk_group = static_cast<int32_t>(config.topk_group),
          .normalise = config.norm_topk_prob,
          .scaling = static_cast<float>(config.routed_scaling_factor)};
}

class Moe : public Sublayer {
 public:
  Moe(const ModelConfig& config, const Weights& weights, const std::string& prefix, int64_t layer,
      const View& counts)
      : layer_(layer),
        experts_(config.n_routed_experts),
        inner_(config.moe_intermediate_size),
        rule_(rule_of(config)),
        router_(weights, prefix + ".gate.weight"),
        gate_up_(weights, prefix + ".experts.gate_up"),
        down_(weights, prefix + ".experts.down"),
        counts_(counts) {
    if (config.router_bias) bias_ = weights(prefix + ".gate.e_score_correction_bias");
    if (config.n_shared_experts > 0)
      shared_ =
          make_mlp(weights, prefix + ".shared_experts", layer, inner_ * config.n_shared_experts);
  }

  void forward(const Pass& pass, const View& h, const View& y) override {
    Context& ctx = pass.ctx;
    const int64_t t = pass.tokens, k = rule_.k, rows = t * k, width = h.cols();
    Tensor logits = pass.activation({t, experts_}), weights = pass.activation({t, k});
    Tensor chosen = ctx.activation({t, k}, DType::kI32);
    Tensor offsets = ctx.activation({experts_ + 1}, DType::kI32);
    Tensor row_token = ctx.activation({rows}, DType::kI32);
    Tensor row_slot = ctx.activation({rows}, DType::kI32);
    Tensor slot_row = ctx.activation({t, k}, DType::kI32);
    linear(ctx, h, router_.w, logits);
    launch(ctx, RouterArgs{logits, bias_, pass.places, chosen, weights, rule_});
    launch(ctx, RoutePlanArgs{chosen, offsets, counts_, row_token, row_slot, slot_row});
    pass.look(layer_, "router logits", logits);
    losses(pass, logits, chosen);

    Tensor gate_up = pass.activation({rows, 2 * inner_});
    const Tensor act = pass.activation({rows, inner_});
    const Tensor out = pass.activation({rows, width});
    launch(ctx, GroupedGemmArgs{h, row_token, gate_up_.w, offsets, gate_up});
    launch(ctx, SwigluArgs{gate_up, act, weights.view().reshape({rows}), row_slot, offsets});
    launch(ctx, GroupedGemmArgs{act, View(), down_.w, offsets, out});
    if (shared_) shared_->forward(pass, h, y);
    launch(ctx, CombineArgs{out, slot_row, shared_ ? y : View(), y});

    pass.save(layer_, SavedClass::kGateUp, "moe.gate_up", std::move(gate_up));
    pass.save(layer_, SavedClass::kRouting, "logits", std::move(logits));
    pass.save(layer_, SavedClass::kRouting, "weights", std::move(weights));
    pass.save(layer_, SavedClass::kRouting, "chosen", std::move(chosen));
    pass.save(layer_, SavedClass::kRouting, "offsets", std::move(offsets));
    pass.save(layer_, SavedClass::kRouting, "row_token", std::move(row_token));
    pass.save(layer_, SavedClass::kRouting, "row_slot", std::move(row_slot));
    pass.save(layer_, SavedClass::kRouting, "slot_row", std::move(slot_row));
  }

  void backward_input(const Pass& pass, const View& dy, const View& dh) override {
    Context& ctx = pass.ctx;
    const int64_t t = pass.tokens, rows = t * rule_.k, width = dy.cols();
    const View gate_up = pass.fetch(layer_, "moe.gate_up");
    const View logits = pass.fetch(layer_, "logits"), chosen = pass.fetch(layer_, "chosen");
    const View offsets = pass.fetch(layer_, "offsets"), slot_row = pass.fetch(layer_, "slot_row");
    Tensor act = pass.activation({rows, inner_}), d_logits = pass.activation({t, experts_});
    const Tensor d_weight = pass.activation({rows}), d_rows = pass.activation({rows, width});
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
    if (shared_) shared_->backward_input(pass, dy, dh);
    launch(ctx, CombineArgs{d_rows, slot_row, shared_ ? dh : View(), dh});
    launch(ctx, RouterBackwardArgs{logits, chosen, slot_row, d_weight, d_logits, rule_});
    if (has_losses(pass)) loss_gradient(pass, logits, d_logits);
    linear_backward_input(ctx, d_logits, router_.w, dh, true);
    pass.save(layer_, SavedClass::kGradient, "moe.act", std::move(act));
    pass.save(layer_, SavedClass::kGradient, "d_logits", std::move(d_logits));
  }

  void backward_weight(const Pass& pass, const View& h, const View& dy) override {
    Context& ctx = pass.ctx;
    const View row_token = pass.fetch(layer_, "row_token"), offsets = pass.fetch(layer_, "offsets");
    launch(ctx, GroupedWgradArgs{dy, row_token, pass.fetch(layer_, "moe.act"), View(), offsets,
                                 down_.grad});
    launch(ctx, GroupedWgradArgs{pass.fetch(layer_, "moe.gate_up"), View(), h, row_token, offsets,
                                 gate_up_.grad});
    linear_backward_weight(ctx, pass.fetch(layer_, "d_logits"), h, router_.grad);
    if (shared_) shared_->backward_weight(pass, h, dy);
  }

 private:
  static bool has_losses(const Pass& pass) { return pass.balance_scale != 0 || pass.z_scale != 0; }

  void loss_gradient(const Pass& pass, const View& logits, const View& d_logits) {
    const int64_t d = pass.documents, n = d * experts_;
    const View stats = pass.fetch(layer_, "stats");
    launch(pass.ctx, RouterLossBackwardArgs{
                         logits, pass.places, stats.slice(0, 0, n).reshape({d, experts_}),
                         stats.slice(0, 2 * n, 2 * n + d), d_logits, rule_.k, rule_.scoring,
                         static_cast<float>(pass.balance_scale), static_cast<float>(pass.z_scale)});
  }

  void losses(const Pass& pass, const View& logits, const View& chosen) {
    if (!has_losses(pass)) return;
    // One buffer, so that a document's sums over its ranks are one message.
    const int64_t d = pass.documents, n = d * experts_;
    Tensor stats = pass.activation({2 * n + d});
    const View counts = stats.view().slice(0, 0, n).reshape({d, experts_});
    const View scores = stats.view().slice(0, n, 2 * n).reshape({d, experts_});
    const View tokens = stats.view().slice(0, 2 * n, 2 * n + d);
    const Tensor z = pass.activation({1});
    launch(pass.ctx,
           RouterStatsArgs{logits, chosen, pass.places, counts, scores, tokens, z, rule_.scoring});
    if (pass.groups.context)
      pass.groups.context->all_reduce(*pass.ctx.stream, stats, Reduction::kSum)
          .wait(*pass.ctx.stream, "model.router_stats");
    // Every rank knows the documents' sums now; one of them counts the loss.
    const double balance = pass.groups.leads_context() ? pass.balance_scale : 0;
    launch(pass.ctx, RouterLossArgs{counts, scores, tokens, z, pass.router_losses, rule_.k,
                                    static_cast<float>(balance), static_cast<float>(pass.z_scale)});
    pass.save(layer_, SavedClass::kRouting, "stats", std::move(stats));
  }

  const int64_t layer_, experts_, inner_;
  const RouterRule rule_;
  const Weight router_, gate_up_, down_;
  const View counts_;
  View bias_;
  std::unique_ptr<Sublayer> shared_;
};

}  // namespace

std::unique_ptr<Sublayer> make_moe(const ModelConfig& config, const Weights& weights,
                                   const std::string& prefix, int64_t layer, const View& counts) {
  return std::make_unique<Moe>(config, weights, prefix, layer, counts);
}

}  // namespace rondo

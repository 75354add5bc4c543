// Routed experts on ragged groups of rows, with shared experts beside them (DeepSeekMoE,
// arXiv 2401.06066). Dropless: every copy of every token has a row; nothing has a capacity.
#include "kernels/ops/router.h"
#include "kernels/ops/router_loss.h"
#include "model/layers/experts.h"
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
        n_experts_(config.n_routed_experts),
        rule_(rule_of(config)),
        router_(weights, prefix + ".gate.weight") {
    if (config.router_bias) bias_ = weights(prefix + ".gate.e_score_correction_bias");
    const ExpertShape shape{layer, n_experts_, config.moe_intermediate_size, rule_.k, counts};
    const Weight gate_up(weights, prefix + ".experts.gate_up");
    const Weight down(weights, prefix + ".experts.down");
    experts_ = weights.table.experts().size() == n_experts_
                   ? make_local_experts(shape, gate_up, down)
                   : make_dispatched_experts(shape, gate_up, down);
    if (config.n_shared_experts > 0)
      shared_ = make_mlp(weights, prefix + ".shared_experts", layer,
                         config.moe_intermediate_size * config.n_shared_experts);
  }

  void forward(const Pass& pass, const View& h, const View& y) override {
    Context& ctx = pass.ctx;
    const int64_t t = pass.tokens, k = rule_.k;
    Tensor logits = pass.activation({t, n_experts_}), weights = pass.activation({t, k});
    Tensor chosen = ctx.activation({t, k}, DType::kI32);
    linear(ctx, h, router_.w, logits);
    launch(ctx, RouterArgs{logits, bias_, pass.places, chosen, weights, rule_});
    experts_->begin(pass, h, chosen, weights);
    pass.look(layer_, "router logits", logits);
    losses(pass, logits, chosen);
    if (shared_) shared_->forward(pass, h, y);
    experts_->finish(pass, h, shared_ ? y : View(), y);
    pass.save(layer_, SavedClass::kRouting, "logits", std::move(logits));
    pass.save(layer_, SavedClass::kRouting, "weights", std::move(weights));
    pass.save(layer_, SavedClass::kRouting, "chosen", std::move(chosen));
  }

  void backward_input(const Pass& pass, const View& h, const View& dy, const View& dh) override {
    Context& ctx = pass.ctx;
    const View logits = pass.fetch(layer_, "logits"), chosen = pass.fetch(layer_, "chosen");
    Tensor d_logits = pass.activation({pass.tokens, n_experts_});
    if (shared_) shared_->backward_input(pass, h, dy, dh);
    const CopyGradients d = experts_->backward_input(pass, h, dy, shared_ ? dh : View(), dh);
    launch(ctx, RouterBackwardArgs{logits, chosen, d.slot_row, d.d_row_weight, d_logits, rule_});
    if (has_losses(pass)) loss_gradient(pass, logits, d_logits);
    linear_backward_input(ctx, d_logits, router_.w, dh, true);
    pass.save(layer_, SavedClass::kGradient, "d_logits", std::move(d_logits));
  }

  void backward_weight(const Pass& pass, const View& h, const View& dy) override {
    experts_->backward_weight(pass, h, dy);
    linear_backward_weight(pass.ctx, pass.fetch(layer_, "d_logits"), h, router_.grad);
    if (shared_) shared_->backward_weight(pass, h, dy);
  }

 private:
  static bool has_losses(const Pass& pass) { return pass.balance_scale != 0 || pass.z_scale != 0; }

  void loss_gradient(const Pass& pass, const View& logits, const View& d_logits) {
    const int64_t d = pass.documents, n = d * n_experts_;
    const View stats = pass.fetch(layer_, "stats");
    launch(pass.ctx, RouterLossBackwardArgs{
                         logits, pass.places, stats.slice(0, 0, n).reshape({d, n_experts_}),
                         stats.slice(0, 2 * n, 2 * n + d), d_logits, rule_.k, rule_.scoring,
                         static_cast<float>(pass.balance_scale), static_cast<float>(pass.z_scale)});
  }

  void losses(const Pass& pass, const View& logits, const View& chosen) {
    if (!has_losses(pass)) return;
    // One buffer, so that a document's sums over its ranks are one message.
    const int64_t d = pass.documents, n = d * n_experts_;
    Tensor stats = pass.activation({2 * n + d});
    const View counts = stats.view().slice(0, 0, n).reshape({d, n_experts_});
    const View scores = stats.view().slice(0, n, 2 * n).reshape({d, n_experts_});
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

  const int64_t layer_, n_experts_;
  const RouterRule rule_;
  const Weight router_;
  View bias_;
  std::unique_ptr<Experts> experts_;
  std::unique_ptr<Sublayer> shared_;
};

}  // namespace

std::unique_ptr<Sublayer> make_moe(const ModelConfig& config, const Weights& weights,
                                   const std::string& prefix, int64_t layer, const View& counts) {
  return std::make_unique<Moe>(config, weights, prefix, layer, counts);
}

}  // namespace rondo

#include "model/network.h"

#include "kernels/ops/embedding.h"

namespace rondo {
namespace {

std::string layer_name(int64_t layer) {
  return "model.layers." + std::to_string(layer);
}

}  // namespace

Network::Network(const ModelConfig& config, const Weights& weights, const std::vector<View>& counts)
    : embedding_(weights, "model.embed_tokens.weight"),
      head_(weights, "model.norm.weight",
            config.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight",
            config.layers()) {
  layers_.reserve(static_cast<size_t>(config.num_hidden_layers));
  for (int64_t i = 0; i < config.num_hidden_layers; ++i)
    layers_.emplace_back(config, weights, layer_name(i), i, counts[static_cast<size_t>(i)]);
  for (int64_t d = 0; d < config.num_nextn_predict_layers; ++d) {
    const int64_t layer = config.num_hidden_layers + d;
    const std::string name = layer_name(layer);
    mtp_.push_back(
        {layer, Weight(weights, name + ".enorm.weight"), Weight(weights, name + ".hnorm.weight"),
         Weight(weights, name + ".eh_proj.weight"),
         DecoderLayer(config, weights, name, layer, counts[static_cast<size_t>(layer)]),
         LossHead(weights, name + ".shared_head.norm.weight",
                  config.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight",
                  config.layers() + 1 + 2 * d),
         config.layers() + 2 + 2 * d});
  }
}

Tensor Network::trunk(const Pass& pass, const View& ids) {
  Tensor x = pass.activation({pass.tokens, pass.config.hidden_size});
  launch(pass.ctx, EmbeddingArgs{embedding_.w, ids, x});
  pass.look(-1, "embedding", x);
  for (DecoderLayer& layer : layers_) x = layer.forward(pass, std::move(x));
  return x;
}

void Network::trunk_backward(const Pass& pass, const View& ids, Tensor dx) {
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    dx = layer->backward_input(pass, std::move(dx));
    layer->backward_weight(pass);
  }
  launch(pass.ctx, EmbeddingBackwardArgs{ids, dx, embedding_.grad});
}

Tensor Network::mtp_forward(const Pass& pass, int depth, const View& ids, const View& previous) {
  MtpLayer& mtp = mtp_[static_cast<size_t>(depth - 1)];
  const int64_t t = pass.tokens, width = pass.config.hidden_size;
  Tensor embedded = pass.activation({t, width}), both = pass.activation({t, 2 * width});
  Tensor inv_e = pass.activation({t}), inv_h = pass.activation({t});
  Tensor x = pass.activation({t, width});
  launch(pass.ctx, EmbeddingArgs{embedding_.w, ids, embedded});
  norm(pass, embedded, mtp.enorm, both.view().slice(1, 0, width), inv_e);
  norm(pass, previous, mtp.hnorm, both.view().slice(1, width, 2 * width), inv_h);
  linear(pass.ctx, both, mtp.eh_proj.w, x);
  pass.look(mtp.layer, "eh_proj", x);
  pass.save(mtp.slot, SavedClass::kResidual, "embedded", std::move(embedded));
  pass.save(mtp.slot, SavedClass::kNorm, "both", std::move(both));
  pass.save(mtp.slot, SavedClass::kNorm, "inv_e", std::move(inv_e));
  pass.save(mtp.slot, SavedClass::kNorm, "inv_h", std::move(inv_h));
  return mtp.decoder.forward(pass, std::move(x));
}

void Network::mtp_backward(const Pass& pass, int depth, const View& ids, const View& previous,
                           Tensor dx, const View& d_previous) {
  MtpLayer& mtp = mtp_[static_cast<size_t>(depth - 1)];
  const int64_t t = pass.tokens, width = pass.config.hidden_size;
  dx = mtp.decoder.backward_input(pass, std::move(dx));
  mtp.decoder.backward_weight(pass);
  const Tensor d_both = pass.activation({t, 2 * width}), d_embedded = pass.activation({t, width});
  linear_backward_input(pass.ctx, dx, mtp.eh_proj.w, d_both);
  linear_backward_weight(pass.ctx, dx, pass.fetch(mtp.slot, "both"), mtp.eh_proj.grad);
  norm_backward(pass, pass.fetch(mtp.slot, "embedded"), mtp.enorm, pass.fetch(mtp.slot, "inv_e"),
                d_both.view().slice(1, 0, width), d_embedded);
  launch(pass.ctx, EmbeddingBackwardArgs{ids, d_embedded, embedding_.grad});
  norm_backward(pass, previous, mtp.hnorm, pass.fetch(mtp.slot, "inv_h"),
                d_both.view().slice(1, width, 2 * width), d_previous);
  pass.saved.release(pass.micro_batch, mtp.slot);
}

void Network::run(const Pass& pass, const DeviceBatch& batch, double labels, const View& loss_sum,
                  const std::vector<Depth>& depths) {
  const int64_t t = pass.tokens, width = pass.config.hidden_size;
  const size_t n = depths.size();
  const auto gradient = [&] { return pass.training ? pass.activation({t, width}) : Tensor(); };

  const Tensor x = trunk(pass, batch.ids);
  const Tensor normed = final_norm(pass, x);
  const Tensor d_normed = gradient();
  head_.loss(pass, normed, batch.labels, labels, 1, loss_sum, d_normed);

  // Depth d reads the normed output of depth d - 1; depth 1 that of the main model.
  std::vector<Tensor> outputs, states, d_states;
  const auto previous = [&](size_t d) { return d == 0 ? normed.view() : states[d - 1].view(); };
  for (size_t d = 0; d < n; ++d) {
    const Depth& depth = depths[d];
    outputs.push_back(
        mtp_forward(depth.pass, static_cast<int>(d + 1), batch.mtp[d].ids, previous(d)));
    states.push_back(mtp_[d].head.normed(depth.pass, outputs[d]));
    d_states.push_back(gradient());
    mtp_[d].head.loss(depth.pass, states[d], batch.mtp[d].labels, depth.labels, depth.weight,
                      depth.loss_sum, d_states[d]);
  }
  if (!pass.training) return;

  Tensor d_previous;  // of the state that the depth behind has read
  for (size_t d = n; d-- > 0;) {
    const Pass& at = depths[d].pass;
    if (d_previous) add_to(pass.ctx, d_previous, d_states[d]);
    Tensor dx = gradient();
    launch(pass.ctx, FillArgs{dx, 0});
    mtp_[d].head.backward(at, outputs[d], d_states[d], dx);
    d_previous = gradient();
    mtp_backward(at, static_cast<int>(d + 1), batch.mtp[d].ids, previous(d), std::move(dx),
                 d_previous);
  }
  if (d_previous) add_to(pass.ctx, d_previous, d_normed);
  Tensor dx = gradient();
  launch(pass.ctx, FillArgs{dx, 0});
  head_.backward(pass, x, d_normed, dx);
  trunk_backward(pass, batch.ids, std::move(dx));
}

}  // namespace rondo

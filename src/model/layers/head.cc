#include "model/layers/head.h"

#include <algorithm>

#include "kernels/ops/cross_entropy.h"
#include "kernels/ops/reduce.h"

namespace rondo {
namespace {

// Logits of one tile: at most 16 MiB, and no fewer than 64 tokens. Depends on the model alone.
int64_t tile_tokens(int64_t vocab_size) {
  return std::max<int64_t>(64, (int64_t{4} << 20) / vocab_size / 64 * 64);
}

}  // namespace

Tensor LossHead::normed(const Pass& pass, const View& x) {
  Tensor y = pass.activation({pass.tokens, pass.config.hidden_size});
  Tensor inv = pass.activation({pass.tokens});
  norm(pass, x, norm_, y, inv);
  pass.save(layer_, SavedClass::kNorm, "inv", std::move(inv));
  return y;
}

void LossHead::loss(const Pass& pass, const View& normed, const View& labels, double count,
                    double weight, const View& loss_sum, const View& d_normed) {
  Context& ctx = pass.ctx;
  const int64_t vocab = head_.w.rows(), tile = std::min(tile_tokens(vocab), pass.tokens);
  const Tensor logits = pass.activation({tile, vocab}), losses = pass.activation({tile});
  // Without any valid label the loss is 0 and so are its gradients.
  const double each = count > 0 ? 1 / count : 0;
  for (int64_t begin = 0; begin < pass.tokens; begin += tile) {
    const int64_t end = std::min(pass.tokens, begin + tile);
    const View rows = logits.view().slice(0, 0, end - begin);
    const View terms = losses.view().slice(0, 0, end - begin);
    const View x = normed.slice(0, begin, end);
    linear(ctx, x, head_.w, rows);
    pass.look(layer_, "logits", rows);
    launch(ctx, CrossEntropyArgs{rows, labels.slice(0, begin, end), terms, pass.training,
                                 static_cast<float>(weight * each)});
    launch(ctx, ReduceArgs{terms, loss_sum, ReduceArgs::Kind::kSum, each});
    if (!pass.training) continue;
    linear_backward_input(ctx, rows, head_.w, d_normed.slice(0, begin, end));
    linear_backward_weight(ctx, rows, x, head_.grad);
  }
}

void LossHead::backward(const Pass& pass, const View& x, const View& d_normed, const View& dx) {
  norm_backward(pass, x, norm_, pass.fetch(layer_, "inv"), d_normed, dx, true);
  pass.saved.release(pass.micro_batch, layer_);
}

}  // namespace rondo

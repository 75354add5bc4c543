#include "train/evaluate.h"

#include <algorithm>

namespace rondo {

EvaluationResult evaluate(Model& model, const Evaluation& data, int64_t batch, int64_t sequences,
                          const std::function<void(int64_t, int64_t)>& progress,
                          const Ranks* ranks) {
  const int64_t all = data.sequences();
  const int64_t n = sequences > 0 ? std::min(sequences, all) : all;
  BatchCounts counts;
  counts.labels = 1;  // the sum of nats comes back undivided
  model.begin_step(counts, 0, Model::Mode::kEvaluate);
  EvaluationResult result;
  BatchCounts seen;
  const int64_t share = ranks ? ranks->data_size() : 1, mine = ranks ? ranks->data_rank() : 0;
  // Every rank takes part in every round, the last ones perhaps with nothing: experts are shared.
  for (int64_t round = 0; round < n; round += batch * share) {
    const int64_t first = std::min(round + mine * batch, n);
    Batch tokens = data.make_batch(first, std::min(batch, n - first));
    if (tokens.tokens() == 0 && !model.groups().expert) continue;
    seen.add(tokens);
    model.run(ranks ? ranks->part(std::move(tokens), model.config().sliding_window) : tokens);
    if (progress) progress(std::min(first + batch, n), n);
  }
  if (ranks) seen = ranks->sum_over_data(seen);
  result.tokens = seen.labels;
  model.reduce();
  const double nats = model.losses().loss;
  result.loss = result.tokens > 0 ? nats / static_cast<double>(result.tokens) : 0;
  if (n == all) result.bits_per_byte = data.bits_per_byte(nats);
  return result;
}

}  // namespace rondo

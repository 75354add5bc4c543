#include "train/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace rondo {

int32_t draw_token(const std::vector<float>& logits, double temperature, double top_p,
                   double uniform) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<int32_t>(best - logits.begin());
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  std::vector<double> weight(order.size());
  double sum = 0;
  for (size_t i = 0; i < order.size(); ++i)
    sum += weight[i] = std::exp((double(logits[order[i]]) - *best) / temperature);
  size_t kept = 0;
  double mass = 0;
  while (kept < order.size() && mass < top_p * sum) mass += weight[kept++];
  double at = uniform * mass;
  for (size_t i = 0; i < kept; ++i)
    if ((at -= weight[i]) < 0) return order[i];
  return order[std::max<size_t>(kept, 1) - 1];
}

void generate(Model& model, std::vector<int32_t> prompt, const GenerateOptions& options,
              const std::function<void(int32_t)>& emit) {
  RONDO_CHECK(!prompt.empty(), "generate: an empty prompt");
  const size_t context = static_cast<size_t>(
      options.context > 0 ? options.context : model.config().max_position_embeddings);
  for (int64_t i = 0; i < options.tokens; ++i) {
    if (prompt.size() > context)
      prompt.erase(prompt.begin(), prompt.end() - static_cast<int64_t>(context));
    Batch batch;
    batch.ids = prompt;
    batch.labels.assign(prompt.size(), kIgnoreLabel);
    for (size_t t = 0; t < prompt.size(); ++t)
      batch.places.push_back({0, static_cast<int32_t>(t), 0, static_cast<int32_t>(t)});
    const std::vector<float> logits = model.logits(batch, batch.tokens() - 1, 1);
    const auto words = philox({options.seed, RandomUse::kSample}, static_cast<uint64_t>(i), 0);
    const int32_t token =
        draw_token(logits, options.temperature, options.top_p, words[0] * 0x1p-32);
    if (token == options.stop) return;
    emit(token);
    prompt.push_back(token);
  }
}

}  // namespace rondo

// Loss on held-out data.
#pragma once

#include <functional>
#include <optional>

#include "model/model.h"
#include "train/data/evaluation.h"
#include "train/ranks.h"

namespace rondo {

struct EvaluationResult {
  double loss = 0;  // nats a predicted token
  int64_t tokens = 0;
  std::optional<double> bits_per_byte;  // of the whole data only
};

// The first `sequences` (0: all), `batch` at a time. `progress` may be null: called with done, all.
// With `ranks` every rank calls it, they share the work, and all get the same result.
EvaluationResult evaluate(Model& model, const Evaluation& data, int64_t batch, int64_t sequences,
                          const std::function<void(int64_t, int64_t)>& progress = nullptr,
                          const Ranks* ranks = nullptr);

}  // namespace rondo

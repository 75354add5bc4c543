#include "train/guard/guard.h"

#include <fmt/format.h>

#include <cmath>

namespace rondo {

void check_finite(Model& model, int64_t step, double loss, double gradient_norm,
                  const std::vector<Batch>& micro_batches) {
  if (std::isfinite(loss) && std::isfinite(gradient_norm)) return;
  std::string first;
  for (const Batch& batch : micro_batches)
    if (first = model.first_nonfinite(batch); !first.empty()) break;
  if (first.empty()) {
    const std::vector<float> gradients = model.get_gradients();
    for (const Parameter& row : model.table().rows()) {
      for (int64_t i = 0; i < row.elements() && first.empty(); ++i)
        if (!std::isfinite(gradients[static_cast<size_t>(row.offset + i)]))
          first = "gradient of " + row.name;
      if (!first.empty()) break;
    }
  }
  const auto text = [](double x) {
    return std::isnan(x) ? std::string("nan") : fmt::format("{}", x);
  };
  if (first.empty()) first = "none found: forward is finite now";
  throw RunFailure(fmt::format("step {}: loss {}, gradient norm {}; first bad tensor: {}", step,
                               text(loss), text(gradient_norm), first));
}

}  // namespace rondo

#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rondo {

double learning_rate(const Schedule& s, int64_t step) {
  const double top = s.learning_rate, low = s.learning_rate * s.min_ratio;
  if (step <= s.warmup_steps)
    return top * static_cast<double>(step) / static_cast<double>(s.warmup_steps);
  const auto share = [](int64_t part, int64_t whole) {
    return whole > 0 ? std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0)
                     : 1.0;
  };
  if (s.kind == Schedule::Kind::kCosine) {
    const double x = share(step - s.warmup_steps, s.steps - s.warmup_steps);
    return low + (top - low) * 0.5 * (1 + std::cos(std::numbers::pi * x));
  }
  if (step <= s.steps - s.decay_steps) return top;
  return top + (low - top) * share(step - (s.steps - s.decay_steps), s.decay_steps);
}

}  // namespace rondo

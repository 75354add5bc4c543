// The learning rate of a step: a pure function, so that resuming has nothing to restore.
#pragma once

#include <cstdint>

namespace rondo {

struct Schedule {
  enum class Kind : uint8_t {
    kCosine,  // warm-up, then half a cosine down to the minimum at the last step
    kWsd,     // warm-up, stable, then a straight line down over the last decay_steps
  };
  Kind kind = Kind::kCosine;
  double learning_rate = 1e-3;
  double min_ratio = 0.1;  // of learning_rate
  int64_t warmup_steps = 0, decay_steps = 0, steps = 1;
};

// Steps count from 1; warm-up step s has learning_rate * s / warmup_steps.
double learning_rate(const Schedule& schedule, int64_t step);

}  // namespace rondo

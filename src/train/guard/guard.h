// Stops a run whose numbers have gone bad, and says where they went bad first.
#pragma once

#include <stdexcept>
#include <vector>

#include "model/model.h"

namespace rondo {

// A run that cannot go on; its input was right. app/ prints the message and exits with 1.
class RunFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws RunFailure when loss or norm is NaN or infinite: step, and the first bad tensor in the
// order of computation, found by running forward on each micro-batch again (or by looking at
// gradients).
void check_finite(Model& model, int64_t step, double loss, double gradient_norm,
                  const std::vector<Batch>& micro_batches);

}  // namespace rondo

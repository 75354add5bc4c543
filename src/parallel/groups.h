// The groups of ranks that a run's layers and steps speak to.
#pragma once

#include "comm/communicator.h"

namespace rondo {

// Null: an axis of one rank, across which nothing goes. Not owned.
struct RankGroups {
  Communicator* world = nullptr;        // every rank
  Communicator* data = nullptr;         // ranks that hold other samples of the batch
  Communicator* context = nullptr;      // ranks that hold other tokens of the same samples
  Communicator* expert = nullptr;       // ranks that hold other experts
  Communicator* expert_data = nullptr;  // ranks that hold the same experts
  int64_t wave_tokens = 0;              // of expert dispatch; 0: derived

  // Whether this rank stands for its samples where something is counted once for all their tokens.
  bool leads_context() const { return !context || context->rank() == 0; }
};

}  // namespace rondo

// Text from a model, a token at a time.
#pragma once

#include <functional>
#include <vector>

#include "model/model.h"

namespace rondo {

struct GenerateOptions {
  int64_t tokens = 100;
  double temperature = 1;  // 0: always the most likely
  double top_p = 1;        // of the probability mass that may be drawn from
  uint64_t seed = 0;
  int64_t context = 0;  // tokens kept as context, the oldest go; 0: max_position_embeddings
  int32_t stop = -1;    // a token that ends the text, not given out; -1: none
};

// `prompt`: at least one token. Each new token is given to `emit` as soon as it is drawn.
void generate(Model& model, std::vector<int32_t> prompt, const GenerateOptions& options,
              const std::function<void(int32_t)>& emit);

// The token that a number in [0, 1) draws from these logits. Ties go to the lower index.
int32_t draw_token(const std::vector<float>& logits, double temperature, double top_p,
                   double uniform);

}  // namespace rondo

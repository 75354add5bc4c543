// Model FLOPs of a training step (multiply-add counts 2): what MFU is measured against.
//
// 3 x forward; active experts (k + shared) and the router; attention by actual visible pairs;
// output head yes, embedding lookup no; recomputation not counted; MTP only if trained.
#pragma once

#include <vector>

#include "model/config.h"

namespace rondo {

// Visible pairs of documents of these lengths: sum L (L + 1) / 2, with a window fewer.
double visible_pairs(const std::vector<int64_t>& document_lengths, int64_t window = 0);

// Forward FLOPs of `tokens` tokens with `pairs` visible pairs, output head included.
double forward_flops(const ModelConfig& config, double tokens, double pairs, bool mtp);
inline double training_flops(const ModelConfig& config, double tokens, double pairs, bool mtp) {
  return 3 * forward_flops(config, tokens, pairs, mtp);
}

}  // namespace rondo

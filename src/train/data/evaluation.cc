#include "train/data/evaluation.h"

#include <numbers>

namespace rondo {

Batch Evaluation::make_batch(int64_t first, int64_t count, int mtp_depth) const {
  Batch batch;
  int32_t doc = 0;
  for (int64_t sequence = first; sequence < first + count; ++sequence)
    corpus_.append(sequence, sequence, &doc, batch);
  make_mtp(batch, mtp_depth);
  return batch;
}

std::optional<double> Evaluation::bits_per_byte(double total_nats) const {
  if (!corpus_.info() || corpus_.info()->raw_bytes == 0 || !corpus_.predicts_all())
    return std::nullopt;
  return total_nats / std::numbers::ln2 / static_cast<double>(corpus_.info()->raw_bytes);
}

}  // namespace rondo

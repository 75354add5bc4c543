#include "model/batch.h"

#include <algorithm>

#include "base/error.h"
#include "parallel/ring_attention.h"

namespace rondo {

int64_t count_valid(const std::vector<int32_t>& labels) {
  return static_cast<int64_t>(labels.size()) -
         std::count(labels.begin(), labels.end(), kIgnoreLabel);
}

Batch part_of(const Batch& batch, const std::vector<std::vector<int64_t>>& tokens, int rank,
              int64_t window) {
  std::vector<std::vector<Place>> places;
  for (const std::vector<int64_t>& rows : tokens) {
    places.emplace_back();
    for (const int64_t row : rows) places.back().push_back(batch.places[static_cast<size_t>(row)]);
  }
  const std::vector<int64_t>& mine = tokens[static_cast<size_t>(rank)];
  const auto pick = [&](const auto& from) {
    std::remove_cvref_t<decltype(from)> out;
    out.reserve(mine.size());
    for (const int64_t row : mine) out.push_back(from[static_cast<size_t>(row)]);
    return out;
  };
  Batch out{pick(batch.ids), pick(batch.places), pick(batch.labels), {}, 0, nullptr};
  for (const Batch::Mtp& mtp : batch.mtp)
    out.mtp.push_back({pick(mtp.ids), pick(mtp.labels), pick(mtp.valid)});
  for (const Place& at : batch.places) out.documents = std::max<int64_t>(out.documents, at.doc + 1);
  out.ring = std::make_shared<const RingPlan>(places, window);
  return out;
}

void make_mtp(Batch& batch, int depth) {
  const int64_t tokens = batch.tokens();
  RONDO_CHECK(static_cast<int64_t>(batch.places.size()) == tokens &&
                  static_cast<int64_t>(batch.labels.size()) == tokens,
              "{} ids, {} places, {} labels", tokens, batch.places.size(), batch.labels.size());
  // Token i + d when it is in the document of token i, else -1. Documents stand together and in
  // order, so it can only be in row i + d.
  const auto ahead = [&](int64_t i, int64_t d) -> int64_t {
    const int64_t j = i + d;
    if (j >= tokens) return -1;
    const Place& here = batch.places[i];
    const Place& there = batch.places[j];
    if (there.sample != here.sample || there.doc != here.doc) return -1;
    RONDO_CHECK(there.pos == here.pos + d,
                "row {} is document {} pos {}, row {} pos {}: not in order and together", i,
                here.doc, here.pos, j, there.pos);
    return j;
  };
  batch.mtp.assign(static_cast<size_t>(depth), {});
  for (int d = 1; d <= depth; ++d) {
    Batch::Mtp& mtp = batch.mtp[d - 1];
    mtp.ids.assign(tokens, 0);
    mtp.labels.assign(tokens, kIgnoreLabel);
    mtp.valid.assign(tokens, 0);
    for (int64_t i = 0; i < tokens; ++i) {
      if (batch.places[i].doc < 0) continue;
      const int64_t input = ahead(i, d);
      if (input < 0) continue;
      mtp.ids[i] = batch.ids[input];
      mtp.valid[i] = 1;
      // The token itself, not the main label of `input`: that one may be ignored by the data. Only
      // where a sequence's end cut the document is the label the sole place that knows the token.
      const int64_t target = ahead(i, d + 1);
      mtp.labels[i] = target >= 0 ? batch.ids[target] : batch.labels[input];
    }
  }
}

}  // namespace rondo

// What the model is given for one micro-batch, on the host: tokens with their places, labels
// already shifted, and for every MTP depth input id and label. All of it is made before tokens are
// spread over ranks; nothing downstream looks at a token's neighbours.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/place.h"

namespace rondo {

class RingPlan;

struct Batch {
  std::vector<int32_t> ids;     // [tokens]; padding: 0 with doc -1
  std::vector<Place> places;    // [tokens]
  std::vector<int32_t> labels;  // [tokens]; the next token, or kIgnoreLabel

  // For depth d = 1..D at [d - 1]: the input id of token i + d and the label d + 1 ahead. A
  // position whose token i + d lies outside its document is invalid: id 0 and valid 0; it takes no
  // part in the MTP layer and no router counts it. Its label is kIgnoreLabel.
  struct Mtp {
    std::vector<int32_t> ids, labels;
    std::vector<uint8_t> valid;
  };
  std::vector<Mtp> mtp;

  // Documents of the whole micro-batch are numbered below this; 0: below the largest here + 1.
  int64_t documents = 0;
  // How the micro-batch lies on the ranks of the context axis; null: all of it is here.
  std::shared_ptr<const RingPlan> ring;

  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
};

// The part of a micro-batch that rank `rank` of the context axis holds: tokens[r] are the rows of
// rank r, every row once. `window`: the model's attention window, 0 for none.
Batch part_of(const Batch& batch, const std::vector<std::vector<int64_t>>& tokens, int rank,
              int64_t window);

// The number of labels that count.
int64_t count_valid(const std::vector<int32_t>& labels);

// Fills `mtp` for depths 1..depth from ids and places by looking for (sample, doc, pos + d). Tokens
// of a document must stand in order and together. A label d + 1 ahead whose own main label is
// ignored by the data (not only the end of the document) is still the true token; where the token
// d + 1 ahead is missing in the document but the last token keeps a true label (a document cut by
// the sequence's end), that label is used for the position d before it.
void make_mtp(Batch& batch, int depth);

}  // namespace rondo

// Where a token is. Masks, RoPE, labels and dropout come from this and never from a row number.
#pragma once

#include <cstdint>

namespace rondo {

// One row of an i32 view [tokens, 4].
struct Place {
  int32_t sample = 0;  // which sequence of the run
  int32_t offset = 0;  // where in it
  int32_t doc = -1;    // which document, unique within a micro-batch; -1 is padding
  int32_t pos = 0;     // where in the document
};
static_assert(sizeof(Place) == 16);

constexpr int32_t kIgnoreLabel = -100;  // the hub's convention

}  // namespace rondo

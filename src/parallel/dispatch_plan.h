// In which waves tokens go to their experts. A wave is a range of each rank's tokens, with all
// copies of each, so that a token's results are complete when its wave is. Every rank makes the
// same plan from the same counts; no rank receives more copies in a wave than the limit, whatever
// the routing: skew makes more waves, not larger ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo {

// Tokens are planned in tiles of this many: the last of a rank may be smaller.
constexpr int64_t kDispatchTile = 64;

class DispatchPlan {
 public:
  // What one tile of tokens sends to one rank.
  struct Count {
    int32_t rows, copies;
  };
  // tokens[s]: of rank s. counts[s]: of its tiles, each ranks() counts. `most_copies`: that a rank
  // may receive in a wave, at least kDispatchTile x k, which a single tile may need; InvariantError
  // when a tile needs more. `least_waves`: so many at least, as far as there are tiles.
  DispatchPlan(const std::vector<int64_t>& tokens, const std::vector<std::vector<Count>>& counts,
               int64_t most_copies, int64_t least_waves);

  int ranks() const { return static_cast<int>(tokens_.size()); }
  int waves() const { return static_cast<int>(waves_.size()); }

  // Tokens of rank `source` in a wave: [begin, end).
  struct Range {
    int64_t begin, end;
  };
  Range tokens(int wave, int source) const;
  // From one rank to another in a wave.
  Count moves(int wave, int source, int to) const;
  // Sums over sources (what `to` receives) or over destinations (what `source` sends).
  Count received(int wave, int to) const;
  Count sent(int wave, int source) const;
  // What buffers must hold, whatever the routing: copies (and so rows) that a rank may receive in a
  // wave, and tokens that it may send.
  int64_t most_copies() const { return most_copies_; }
  int64_t most_tokens(int source) const { return most_tokens_[static_cast<size_t>(source)]; }
  // Copies that `source` has sent in the waves before.
  int64_t copies_before(int wave, int source) const;

 private:
  struct Wave {
    std::vector<Range> tiles;  // of each source
    std::vector<Count> moves;  // [source][to]
  };
  const int64_t most_copies_;
  std::vector<int64_t> tokens_, most_tokens_;
  std::vector<Wave> waves_;
};

}  // namespace rondo

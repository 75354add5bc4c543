#include "parallel/dispatch_plan.h"

#include <algorithm>

#include "base/error.h"

namespace rondo {
namespace {

DispatchPlan::Count& operator+=(DispatchPlan::Count& a, const DispatchPlan::Count& b) {
  a.rows += b.rows;
  a.copies += b.copies;
  return a;
}

}  // namespace

// Greedy: each source in turn adds its next tile as long as no rank would receive too much. A tile
// always fits into an empty wave, so every wave takes some.
DispatchPlan::DispatchPlan(const std::vector<int64_t>& tokens,
                           const std::vector<std::vector<Count>>& counts, int64_t most_copies,
                           int64_t least_waves)
    : most_copies_(most_copies), tokens_(tokens) {
  const size_t n = tokens.size();
  std::vector<int64_t> next(n, 0), tiles(n), share(n);
  for (size_t s = 0; s < n; ++s) {
    tiles[s] = (tokens[s] + kDispatchTile - 1) / kDispatchTile;
    share[s] = (tiles[s] + least_waves - 1) / least_waves;
    most_tokens_.push_back(std::min(tokens[s], share[s] * kDispatchTile));
    RONDO_CHECK(counts[s].size() == static_cast<size_t>(tiles[s]) * n,
                "{} counts for {} tiles and {} ranks", counts[s].size(), tiles[s], n);
  }
  const auto left = [&](size_t s) { return next[s] < tiles[s]; };
  while (true) {
    bool any = false;
    for (size_t s = 0; s < n; ++s) any |= left(s);
    if (!any) return;
    Wave wave;
    for (size_t s = 0; s < n; ++s) wave.tiles.push_back({next[s], next[s]});
    wave.moves.assign(n * n, {0, 0});
    std::vector<int64_t> receives(n, 0);
    for (bool added = true; added;) {
      added = false;
      for (size_t s = 0; s < n; ++s) {
        Range& mine = wave.tiles[s];
        if (!left(s) || mine.end - mine.begin == share[s]) continue;
        const Count* tile = counts[s].data() + static_cast<size_t>(next[s]) * n;
        bool fits = true;
        for (size_t to = 0; to < n; ++to) fits &= receives[to] + tile[to].copies <= most_copies;
        if (!fits) continue;
        for (size_t to = 0; to < n; ++to) {
          receives[to] += tile[to].copies;
          wave.moves[s * n + to] += tile[to];
        }
        mine.end = ++next[s];
        added = true;
      }
    }
    bool progress = false;
    for (size_t s = 0; s < n; ++s) progress |= wave.tiles[s].end > wave.tiles[s].begin;
    RONDO_CHECK(progress, "a tile of {} tokens needs more than {} rows on one rank", kDispatchTile,
                most_copies);
    waves_.push_back(std::move(wave));
  }
}

DispatchPlan::Range DispatchPlan::tokens(int wave, int source) const {
  const Range& tiles = waves_[static_cast<size_t>(wave)].tiles[static_cast<size_t>(source)];
  const int64_t all = tokens_[static_cast<size_t>(source)];
  return {std::min(all, tiles.begin * kDispatchTile), std::min(all, tiles.end * kDispatchTile)};
}

DispatchPlan::Count DispatchPlan::moves(int wave, int source, int to) const {
  return waves_[static_cast<size_t>(wave)].moves[static_cast<size_t>(source * ranks() + to)];
}

DispatchPlan::Count DispatchPlan::received(int wave, int to) const {
  Count out{0, 0};
  for (int s = 0; s < ranks(); ++s) out += moves(wave, s, to);
  return out;
}

DispatchPlan::Count DispatchPlan::sent(int wave, int source) const {
  Count out{0, 0};
  for (int to = 0; to < ranks(); ++to) out += moves(wave, source, to);
  return out;
}

int64_t DispatchPlan::copies_before(int wave, int source) const {
  int64_t out = 0;
  for (int w = 0; w < wave; ++w) out += sent(w, source).copies;
  return out;
}

}  // namespace rondo

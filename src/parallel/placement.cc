#include "parallel/placement.h"

#include <algorithm>

#include "base/error.h"

namespace rondo {
namespace {

using Kind = TokenPlacement::Kind;

constexpr const char* kWholeSequence = "/sequence";

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kContiguous:
      return "contiguous";
    case Kind::kZigzag:
      return "zigzag";
    case Kind::kStriped:
      return "striped";
  }
  return "";
}

// Spreads rows [begin, end), which belong together. `shift`: which part the remainder begins with.
void spread(Kind kind, int64_t begin, int64_t end, int64_t& shift,
            std::vector<std::vector<int64_t>>& out) {
  const int64_t ranks = static_cast<int64_t>(out.size()), n = end - begin;
  if (kind == Kind::kStriped) {
    for (int64_t i = 0; i < n; ++i)
      out[static_cast<size_t>((shift + i) % ranks)].push_back(begin + i);
    shift = (shift + n) % ranks;
    return;
  }
  const int64_t parts = kind == Kind::kZigzag ? 2 * ranks : ranks;
  const int64_t rest = n % parts;
  int64_t at = begin;
  for (int64_t c = 0; c < parts; ++c) {
    const bool more = (c - shift + parts) % parts < rest;
    const int64_t rank = c < ranks ? c : parts - 1 - c;
    for (const int64_t stop = at + n / parts + (more ? 1 : 0); at < stop; ++at)
      out[static_cast<size_t>(rank)].push_back(at);
  }
  shift = (shift + rest) % parts;
}

}  // namespace

TokenPlacement parse_placement(const std::string& text) {
  for (const Kind kind : {Kind::kContiguous, Kind::kZigzag, Kind::kStriped}) {
    if (text == name_of(kind)) return {kind, true};
    if (text == std::string(name_of(kind)) + kWholeSequence) return {kind, false};
  }
  fail_input(
      "parallel.placement is \"{}\"; it may be zigzag, contiguous or striped, and end in {} to "
      "spread whole sequences instead of documents",
      text, kWholeSequence);
}

std::string to_string(const TokenPlacement& placement) {
  return name_of(placement.kind) + std::string(placement.per_document ? "" : kWholeSequence);
}

std::vector<std::vector<int64_t>> place_tokens(const TokenPlacement& placement,
                                               std::span<const Place> places, int ranks) {
  RONDO_CHECK(ranks > 0, "{} ranks", ranks);
  std::vector<std::vector<int64_t>> out(static_cast<size_t>(ranks));
  const int64_t n = static_cast<int64_t>(places.size());
  const auto together = [&](int64_t a, int64_t b) {
    const Place& x = places[static_cast<size_t>(a)];
    const Place& y = places[static_cast<size_t>(b)];
    return x.sample == y.sample && (!placement.per_document || x.doc == y.doc);
  };
  int64_t shift = 0;
  for (int64_t begin = 0, end; begin < n; begin = end) {
    end = begin + 1;
    while (end < n && together(begin, end)) ++end;
    spread(placement.kind, begin, end, shift, out);
  }
  return out;
}

PartRange part_range(int64_t n, int parts, int i) {
  const int64_t each = n / parts, rest = n % parts;
  const int64_t begin = i * each + std::min<int64_t>(i, rest);
  return {begin, begin + each + (i < rest ? 1 : 0)};
}

int part_holding(int64_t n, int parts, int64_t at) {
  RONDO_CHECK(at >= 0 && at < n, "{} of {}", at, n);
  const int64_t each = n / parts, rest = n % parts;
  if (at < rest * (each + 1)) return static_cast<int>(at / (each + 1));
  return static_cast<int>(rest + (at - rest * (each + 1)) / each);
}

}  // namespace rondo

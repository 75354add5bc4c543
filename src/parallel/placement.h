// Who holds what. Nobody else computes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/place.h"

namespace rondo {

// How the tokens of a micro-batch lie on the ranks of the context axis.
struct TokenPlacement {
  enum class Kind : uint8_t {
    kContiguous,  // rank r holds the r-th part; the last rank works most under a causal mask
    kZigzag,      // of 2P chunks rank r holds r and 2P - 1 - r: equal work (Megatron-LM, Llama 3)
    kStriped,     // token i on rank i mod P (Brandon et al., Striped Attention, 2023)
  };
  Kind kind = Kind::kZigzag;
  bool per_document = true;  // each document spread by itself; else each sample as one
};

// "zigzag", "contiguous" or "striped", with "/sequence" behind it when not per document.
// InputError for anything else.
TokenPlacement parse_placement(const std::string& text);
std::string to_string(const TokenPlacement& placement);

// For each of `ranks` the rows it holds, upwards. Every row is held once, padding too (as a
// document of its own). Any number of tokens will do: the first (n mod parts) parts get one more;
// per document that remainder begins where the documents before have left off, so that short
// documents do not pile up on rank 0.
std::vector<std::vector<int64_t>> place_tokens(const TokenPlacement& placement,
                                               std::span<const Place> places, int ranks);

// [begin, end) of part `i` of n things in `parts`: the first n mod parts parts get one more.
struct PartRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
PartRange part_range(int64_t n, int parts, int i);
// Which part thing `at` is in.
int part_holding(int64_t n, int parts, int64_t at);

}  // namespace rondo

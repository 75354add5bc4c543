#include "train/data/permutation.h"

#include <bit>

#include "base/error.h"
#include "base/random.h"

namespace rondo {
namespace {

constexpr uint64_t kRounds = 8;  // a small network needs more than the four of theory

}  // namespace

Permutation::Permutation(uint64_t size, uint64_t seed, uint64_t a, uint64_t b) : size_(size) {
  RONDO_CHECK(size >= 1 && size >> 62 == 0, "size {}", size);
  const auto words = philox({seed, RandomUse::kShuffle}, a, b);
  key_ = static_cast<uint64_t>(words[1]) << 32 | words[0];
  half_bits_ = (std::bit_width(size - 1) + 1) / 2;
}

uint64_t Permutation::operator()(uint64_t index) const {
  RONDO_CHECK(index < size_, "{} of {}", index, size_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = index >> half_bits_, right = index & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = philox({key_, RandomUse::kShuffle}, right, round)[0];
      const uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    index = left << half_bits_ | right;
  } while (index >= size_);
  return index;
}

}  // namespace rondo

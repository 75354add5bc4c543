// A shuffle with random access and no table.
#pragma once

#include <cstdint>

namespace rondo {

// Puts [0, size) in an order that is a pure function of (size, seed, a, b): a Feistel network of
// philox rounds over the next power of four, walked on until it lands inside (less than four steps
// on average). Size >= 1; b < 2^32.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed, uint64_t a, uint64_t b);
  // One to one on [0, size).
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t size_, key_;
  int half_bits_ = 0;
};

}  // namespace rondo

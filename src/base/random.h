// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11; the Random123 library).
// A value is a pure function of (key, counter), so no order of evaluation, thread count or layout
// changes it, and nothing has to be stored to resume.
#pragma once

#include <array>
#include <cstdint>

namespace rondo {

// What separate uses of random numbers are called, so that two of them never share a stream.
enum class RandomUse : uint32_t { kInit = 1, kShuffle = 2, kDropout = 3, kSample = 4, kTest = 5 };

struct RandomKey {
  uint64_t seed = 0;
  RandomUse use = RandomUse::kTest;
};

// Four independent 32-bit words. The counter is (a, b): 64 bits each; of `b` the upper 32 bits are
// used up by the use, so b < 2^32.
std::array<uint32_t, 4> philox(RandomKey key, uint64_t a, uint64_t b);

// [0, 1) with 24 bits; (0, 1] would be 1 - x.
inline float uniform01(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

// Two standard normal values from four words (Box-Muller in double).
std::array<double, 2> normal(const std::array<uint32_t, 4>& words);

}  // namespace rondo

#include "base/random.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace rondo {

std::array<uint32_t, 4> philox(RandomKey key, uint64_t a, uint64_t b) {
  RONDO_CHECK(b >> 32 == 0, "counter b = {}", b);
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b),
       static_cast<uint32_t>(key.use)}};
  const r123::Philox4x32::key_type philox_key = {
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)}};
  const auto out = r123::Philox4x32()(counter, philox_key);
  return {out[0], out[1], out[2], out[3]};
}

std::array<double, 2> normal(const std::array<uint32_t, 4>& words) {
  const auto wide = [](uint32_t high, uint32_t low) {  // (0, 1], 53 bits
    const uint64_t bits = (static_cast<uint64_t>(high) << 21) ^ (low >> 11);
    return (static_cast<double>(bits) + 1) * 0x1p-53;
  };
  const double radius = std::sqrt(-2 * std::log(wide(words[0], words[1])));
  const double angle = 2 * std::numbers::pi * wide(words[2], words[3]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace rondo

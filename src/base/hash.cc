#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace rondo {

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t hash64(std::string_view text, uint64_t seed) {
  return hash64(std::as_bytes(std::span(text.data(), text.size())), seed);
}

std::string hex64(uint64_t value) {
  return fmt::format("{:016x}", value);
}

}  // namespace rondo

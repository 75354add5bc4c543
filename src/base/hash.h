// XXH3, 64 bits: for comparing configurations, files and results, not for security.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rondo {

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t hash64(std::string_view text, uint64_t seed = 0);

// Sixteen lower-case hex digits.
std::string hex64(uint64_t value);

}  // namespace rondo

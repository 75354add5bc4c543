// Sizes in bytes as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rondo {

// "64MiB", "2GiB", "512KiB", "1GB" or plain bytes; nullopt for anything else or above 2^60.
std::optional<int64_t> parse_size(const std::string& text);
std::string format_size(int64_t bytes);  // "64.0 MiB"

}  // namespace rondo

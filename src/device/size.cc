#include "device/size.h"

#include <fmt/format.h>

#include <cstdlib>

namespace rondo {

std::optional<int64_t> parse_size(const std::string& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  double scale;
  if (unit.empty() || unit == "B")
    scale = 1;
  else if (unit == "KiB")
    scale = 0x1p10;
  else if (unit == "MiB")
    scale = 0x1p20;
  else if (unit == "GiB")
    scale = 0x1p30;
  else if (unit == "KB")
    scale = 1e3;
  else if (unit == "MB")
    scale = 1e6;
  else if (unit == "GB")
    scale = 1e9;
  else
    return std::nullopt;
  const double bytes = number * scale;
  if (!(bytes >= 0 && bytes < 0x1p60)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string format_size(int64_t bytes) {
  double value = static_cast<double>(bytes);
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, units[unit]);
}

}  // namespace rondo

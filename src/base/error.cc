#include "base/error.h"

#include <cstring>

namespace rondo {

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  const char* source = std::strstr(file, "src/");
  throw InvariantError(
      fmt::format("{}:{}: {} does not hold: {}", source ? source : file, line, condition, message));
}

void check_range(const char* what, double value, double low, double high) {
  if (!(value >= low && value <= high))
    fail_input("{} is {}; it must lie between {} and {}", what, value, low, high);
}

}  // namespace rondo

// Errors and checks. Nothing below app/ calls exit or abort: everything is thrown, and app/
// decides.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace rondo {

// Bad input: a configuration, a file, a peer. The message is one line that says what was wrong,
// where, and what would be right. app/ prints it as `rondo: MESSAGE` and exits with 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A broken invariant: a fault in Rondo, not in its input. app/ exits with 70.
class InvariantError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <class... Args>
[[noreturn]] void fail_input(fmt::format_string<Args...> format, Args&&... args) {
  throw InputError(fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             const std::string& message);

// An integer as read from outside, in its range or an InputError that names `what`.
void check_range(const char* what, double value, double low, double high);

}  // namespace rondo

// RONDO_CHECK(condition, "format", values...): always on; throws InvariantError.
#define RONDO_CHECK(condition, ...)                                                    \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::rondo::fail_check(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)

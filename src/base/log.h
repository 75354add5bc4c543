// Lines for people, on standard error. spdlog behind a facade: it compiles slowly.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace rondo {

enum class LogLevel { kDebug, kInfo, kWarning };

// Thread-safe. Rank r > 0 logs only warnings unless asked otherwise.
class Log {
 public:
  explicit Log(int rank = 0, LogLevel least = LogLevel::kInfo);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
  }
  void write(LogLevel level, const std::string& message);

  // Called before and after a line is written, so that a progress bar can step aside.
  void set_hooks(std::function<void()> before, std::function<void()> after);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rondo

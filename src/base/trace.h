// Named spans of time, written as the JSON that chrome://tracing and Perfetto read.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace rondo {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // `name` must outlive this (a literal). Thread-safe.
  void add(const char* name, int lane, Clock::time_point begin, Clock::time_point end);
  std::string to_json(int rank) const;

 private:
  struct Span {
    const char* name;
    int lane;
    int64_t begin_us, duration_us;
  };
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

}  // namespace rondo

// What a person sees while a run goes on: a bar on a terminal, a line now and then elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "train/metrics/metrics.h"

namespace rondo {

class Progress {
 public:
  // `log_interval`: steps between lines when `terminal` is false.
  Progress(bool terminal, int64_t log_interval, int64_t first_step);
  ~Progress() { clear(); }
  void show(const StepMetrics& metrics);
  void note(const std::string& line);  // a line of its own, the bar below it
  void clear();                        // takes the bar away
  void redraw();

 private:
  const bool terminal_;
  const int64_t log_interval_, first_step_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_{};
  std::string bar_;
};

// "step 120/1200 | loss 2.3456 | 12,345 tok/s | ...": without the bar.
std::string describe(const StepMetrics& metrics, double seconds_left);

}  // namespace rondo

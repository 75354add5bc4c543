// What a step is measured by, and metrics.jsonl.
#pragma once

#include <optional>
#include <string>

#include "base/value.h"
#include "model/model.h"

namespace rondo {

struct StepMetrics {
  int64_t step = 0, steps = 0;
  Losses losses;
  double grad_norm = 0, learning_rate = 0;
  double step_seconds = 0, tokens_per_second = 0;
  double mfu = 0;           // of the peak
  int64_t tokens_seen = 0;  // of the whole run
  double expert_load = 0;   // max / mean tokens an expert, worst layer; 0 without experts
  std::optional<double> validation_loss, validation_bits_per_byte;
};

// One object a line. Opening for a run that resumes at `step` drops the lines of later steps and a
// torn last line, so that every step stands there once.
class MetricsFile {
 public:
  MetricsFile(const std::string& path, int64_t resumed_step);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  void write(const StepMetrics& metrics);

 private:
  std::string path_;
  int fd_;
};

Value to_value(const StepMetrics& metrics);

}  // namespace rondo

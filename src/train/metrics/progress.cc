#include "train/metrics/progress.h"

#include <fmt/format.h>

#include <cstdio>

namespace rondo {
namespace {

std::string thousands(double x) {
  std::string digits = fmt::format("{:.0f}", x);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string clock_text(double seconds) {
  const int64_t s = static_cast<int64_t>(seconds + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

std::string describe(const StepMetrics& m, double seconds_left) {
  std::string text =
      fmt::format("step {}/{} | loss {:.4f} | {} tok/s | MFU {:.0f}% | norm {:.2f}", m.step,
                  m.steps, m.losses.loss, thousands(m.tokens_per_second), 100 * m.mfu, m.grad_norm);
  if (m.expert_load > 0) text += fmt::format(" | max/mean load {:.2f}", m.expert_load);
  return text + " | " + clock_text(seconds_left) + " left";
}

Progress::Progress(bool terminal, int64_t log_interval, int64_t first_step)
    : terminal_(terminal), log_interval_(log_interval), first_step_(first_step) {}

void Progress::show(const StepMetrics& m) {
  const auto now = std::chrono::steady_clock::now();
  const double spent = std::chrono::duration<double>(now - start_).count();
  const double done = static_cast<double>(m.step - first_step_ + 1);
  const double left = spent / done * static_cast<double>(m.steps - m.step);
  if (!terminal_) {
    if (m.step == first_step_ || m.step % log_interval_ == 0 || m.step == m.steps) {
      fmt::print("{}\n", describe(m, left));
      std::fflush(stdout);
    }
    return;
  }
  if (m.step < m.steps && now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  constexpr int64_t kWidth = 20;
  const int64_t full = m.steps > 0 ? m.step * kWidth / m.steps : 0;
  bar_ = "[";
  for (int64_t i = 0; i < kWidth; ++i) bar_ += i < full ? '=' : i == full ? '>' : ' ';
  bar_ += "] " + describe(m, left);
  redraw();
  if (m.step == m.steps) {
    fmt::print("\n");
    bar_.clear();
  }
}

void Progress::note(const std::string& line) {
  clear();
  fmt::print("{}\n", line);
  redraw();
  std::fflush(stdout);
}

void Progress::clear() {
  if (!terminal_ || bar_.empty()) return;
  fmt::print("\r\x1b[K");
  std::fflush(stdout);
}

void Progress::redraw() {
  if (!terminal_ || bar_.empty()) return;
  fmt::print("\r\x1b[K{}", bar_);
  std::fflush(stdout);
}

}  // namespace rondo

#include "device/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace rondo {
namespace {

constexpr const char* kNames[kMemoryClasses] = {
    "weights", "gradients", "optimizer", "activations", "communication", "workspace", "inputs"};

}  // namespace

const char* name_of(MemoryClass c) {
  return kNames[static_cast<int>(c)];
}

void Ledger::use(MemoryClass c, int64_t bytes) {
  std::lock_guard lock(mutex_);
  Use& use = use_[static_cast<int>(c)];
  use.current += bytes;
  use.peak = std::max(use.peak, use.current);
  RONDO_CHECK(use.current >= 0, "{} fell to {} bytes", name_of(c), use.current);
}

void Ledger::reserve(int64_t bytes) {
  std::lock_guard lock(mutex_);
  reserved_ += bytes;
  if (bytes > 0) ++reservations_;
}

Ledger::Use Ledger::of(MemoryClass c) const {
  std::lock_guard lock(mutex_);
  return use_[static_cast<int>(c)];
}

int64_t Ledger::reserved() const {
  std::lock_guard lock(mutex_);
  return reserved_;
}

int64_t Ledger::reservations() const {
  std::lock_guard lock(mutex_);
  return reservations_;
}

std::string Ledger::table() const {
  std::lock_guard lock(mutex_);
  std::string out = fmt::format("{:<14}{:>12}{:>12}\n", "MiB", "now", "peak");
  for (int i = 0; i < kMemoryClasses; ++i)
    out += fmt::format("{:<14}{:>12.1f}{:>12.1f}\n", kNames[i],
                       static_cast<double>(use_[i].current) / 1048576.0,
                       static_cast<double>(use_[i].peak) / 1048576.0);
  out += fmt::format("{:<14}{:>12.1f}\n", "reserved", static_cast<double>(reserved_) / 1048576.0);
  return out;
}

}  // namespace rondo

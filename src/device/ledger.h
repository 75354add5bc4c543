// The memory ledger: every byte under what it is for.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

namespace rondo {

enum class MemoryClass : uint8_t {
  kWeights,
  kGradients,
  kOptimizer,
  kActivations,
  kCommunication,
  kWorkspace,
  kInputs,
};
constexpr int kMemoryClasses = 7;
const char* name_of(MemoryClass c);

// Two accounts. `use`: bytes of live tensors by class. `reserved`: bytes taken from the device,
// which the arena keeps for reuse. A step after the second must change neither a peak nor
// `reservations` (tests hold this). Thread-safe.
class Ledger {
 public:
  struct Use {
    int64_t current = 0, peak = 0;  // bytes
  };

  void use(MemoryClass c, int64_t bytes);  // negative when a tensor ends
  void reserve(int64_t bytes);             // negative when given back to the device

  Use of(MemoryClass c) const;
  int64_t reserved() const;      // bytes
  int64_t reservations() const;  // how often memory was taken from the device
  std::string table() const;     // for people

 private:
  mutable std::mutex mutex_;
  std::array<Use, kMemoryClasses> use_{};
  int64_t reserved_ = 0, reservations_ = 0;
};

}  // namespace rondo

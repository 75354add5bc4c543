// Tensors, and the arena that they come from.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/ledger.h"

namespace rondo {

class Arena;

// Owns device memory while it lives; movable. Converts to its View, which must not outlive it other
// than in work already submitted to the arena's stream.
class Tensor {
 public:
  Tensor() = default;
  ~Tensor() { reset(); }
  Tensor(Tensor&& other) noexcept { *this = std::move(other); }
  Tensor& operator=(Tensor&& other) noexcept;
  void reset();  // gives the memory back
  explicit operator bool() const { return arena_ != nullptr; }
  operator const View&() const { return view_; }
  const View& view() const { return view_; }

 private:
  friend class Arena;
  Arena* arena_ = nullptr;
  View view_;
  MemoryClass class_ = MemoryClass::kActivations;
  int64_t block_ = 0;
};

// Hands out device memory and keeps what comes back for the next asker. Ordered by one stream: a
// block given back may be handed out at once, since whoever uses it next is submitted behind its
// last user. Work on another stream that touches a tensor must be waited for before it ends.
// Requests that repeat from step to step take nothing new from the device.
class Arena {
 public:
  Arena(Device& device, Stream& stream, Ledger& ledger);
  ~Arena();  // every tensor must have ended; waits for the stream
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Contents are undefined (NaN on a device that poisons). Zero elements are allowed.
  Tensor allocate(MemoryClass c, DType dtype, std::initializer_list<int64_t> shape);

 private:
  friend class Tensor;
  void give_back(int64_t block, MemoryClass c, void* data, int64_t bytes);

  Device& device_;
  Stream& stream_;
  Ledger& ledger_;
  std::multimap<int64_t, void*> free_;  // bytes -> block
  std::vector<void*> blocks_;
  int64_t live_ = 0;
};

}  // namespace rondo

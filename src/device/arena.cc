#include "device/arena.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rondo {
namespace {

// Sizes are rounded up so that nearly equal requests share blocks: at most an eighth is wasted.
int64_t round_size(int64_t bytes) {
  constexpr int64_t kLeast = 256;
  if (bytes <= kLeast) return kLeast;
  const int64_t step = std::max<int64_t>(
      kLeast, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 8);
  return (bytes + step - 1) / step * step;
}

}  // namespace

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  if (this != &other) {
    reset();
    arena_ = std::exchange(other.arena_, nullptr);
    view_ = std::exchange(other.view_, View());
    class_ = other.class_;
    block_ = other.block_;
  }
  return *this;
}

void Tensor::reset() {
  if (arena_) std::exchange(arena_, nullptr)->give_back(block_, class_, view_.data, view_.bytes());
  view_ = View();
}

Arena::Arena(Device& device, Stream& stream, Ledger& ledger)
    : device_(device), stream_(stream), ledger_(ledger) {}

Arena::~Arena() {
  try {
    stream_.synchronize("arena.end");
  } catch (...) {
    // The stream failed earlier and its error has been or will be reported by whoever waits on it.
  }
  for (const auto& [bytes, data] : free_) ledger_.reserve(-bytes);
  for (void* block : blocks_) device_.release(block);
}

Tensor Arena::allocate(MemoryClass c, DType dtype, std::initializer_list<int64_t> shape) {
  Tensor tensor;
  tensor.view_ = View(nullptr, dtype, Memory::kDevice, shape);
  const int64_t bytes = tensor.view_.bytes();
  const int64_t block = round_size(bytes);
  // Best fit, but not a block more than twice as large: that one has another customer.
  auto it = free_.lower_bound(block);
  if (it != free_.end() && it->first <= 2 * block) {
    tensor.view_.data = it->second;
    tensor.block_ = it->first;
    free_.erase(it);
  } else {
    tensor.view_.data = device_.allocate(block);
    tensor.block_ = block;
    blocks_.push_back(tensor.view_.data);
    ledger_.reserve(block);
  }
  tensor.class_ = c;
  tensor.arena_ = this;
  ++live_;
  ledger_.use(c, bytes);
  if (device_.poisons() && bytes > 0) {
    const View all(tensor.view_.data, DType::kU8, Memory::kDevice, {tensor.block_});
    stream_.submit("poison", [all](Executor& executor) {
      std::memset(executor.translate(all).data, 0xff, static_cast<size_t>(all.bytes()));
    });
  }
  return tensor;
}

void Arena::give_back(int64_t block, MemoryClass c, void* data, int64_t bytes) {
  free_.emplace(block, data);
  --live_;
  ledger_.use(c, -bytes);
}

}  // namespace rondo

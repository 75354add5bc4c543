#include "device/emu/emu.h"

#include <sys/mman.h>

#include <map>

#include "base/error.h"
#include "device/async_stream.h"
#include "device/size.h"

namespace rondo {
namespace {

constexpr int64_t kAlignment = 256;

// The device's memory: a reserved range without rights, the bytes elsewhere, first-fit blocks.
class EmuMemory {
 public:
  explicit EmuMemory(int64_t bytes) : bytes_(bytes / kAlignment * kAlignment) {
    const auto size = static_cast<size_t>(bytes_);
    void* reserved =
        ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) fail_input("device emu: cannot reserve {}", format_size(bytes_));
    device_ = static_cast<std::byte*>(reserved);
    void* real = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (real == MAP_FAILED) {
      ::munmap(device_, size);
      fail_input("device emu: no memory for {}", format_size(bytes_));
    }
    host_ = static_cast<std::byte*>(real);
    free_[0] = bytes_;
  }
  ~EmuMemory() {
    ::munmap(device_, static_cast<size_t>(bytes_));
    ::munmap(host_, static_cast<size_t>(bytes_));
  }
  EmuMemory(const EmuMemory&) = delete;
  EmuMemory& operator=(const EmuMemory&) = delete;

  void* allocate(int64_t bytes) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    std::lock_guard lock(mutex_);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const auto [offset, size] = *it;
      if (size < bytes) continue;
      free_.erase(it);
      if (size > bytes) free_[offset + bytes] = size - bytes;
      used_[offset] = bytes;
      return device_ + offset;
    }
    int64_t left = 0;
    for (const auto& [offset, size] : free_) left += size;
    fail_input(
        "device emu:{}: no room for {} ({} free, in pieces); give it a larger size or use a "
        "smaller micro-batch",
        bytes_, format_size(bytes), format_size(left));
  }

  void release(void* data) {
    std::lock_guard lock(mutex_);
    const int64_t offset = static_cast<std::byte*>(data) - device_;
    const auto it = used_.find(offset);
    RONDO_CHECK(it != used_.end(), "release of an address that was not allocated");
    int64_t size = it->second;
    used_.erase(it);
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && offset + size == next->first) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    free_[offset] = size;
  }

  View translate(View view) const {
    if (view.memory == Memory::kHost || !view.data) return view;
    auto* data = static_cast<std::byte*>(view.data);
    int64_t last = 0;  // of the last element, in elements
    for (int i = 0; i < view.rank; ++i) last += (view.shape[i] - 1) * view.stride[i];
    const int64_t span =
        view.elements() == 0 ? 0 : (last + 1) * static_cast<int64_t>(size_of(view.dtype));
    RONDO_CHECK(data >= device_ && data + span <= device_ + bytes_,
                "{} lies outside the device's memory", to_string(view));
    view.data = host_ + (data - device_);
    return view;
  }

 private:
  const int64_t bytes_;
  std::byte* device_;
  std::byte* host_;
  std::mutex mutex_;
  std::map<int64_t, int64_t> free_, used_;  // offset -> bytes
};

class EmuExecutor : public Executor {
 public:
  EmuExecutor(EmuMemory& memory, ThreadPool& pool) : memory_(memory), pool_(&pool) {}
  // With one thread of its own.
  explicit EmuExecutor(EmuMemory& memory)
      : memory_(memory), own_(std::make_unique<ThreadPool>(1)), pool_(own_.get()) {}
  View translate(View view) override { return memory_.translate(view); }
  ThreadPool& pool() override { return *pool_; }

 private:
  EmuMemory& memory_;
  std::unique_ptr<ThreadPool> own_;
  ThreadPool* pool_;
};

class EmuDevice : public Device {
 public:
  EmuDevice(int64_t bytes, const DeviceOptions& options)
      : bytes_(bytes),
        memory_(bytes),
        pool_(options.threads),
        book_(std::make_shared<WaitBook>(options.drop_wait)),
        delay_us_(options.delay_us) {}

  std::string name() const override { return fmt::format("emu:{}", bytes_); }
  void* allocate(int64_t bytes) override { return memory_.allocate(bytes); }
  void release(void* data) override { memory_.release(data); }
  std::unique_ptr<Stream> make_stream(const char*) override {
    // Streams of kernels share the device's threads: one task at a time has them.
    return std::make_unique<AsyncStream>(std::make_unique<EmuExecutor>(memory_, pool_),
                                         options(&pool_mutex_));
  }
  std::unique_ptr<Stream> make_transfer_stream(const char*) override {
    return std::make_unique<AsyncStream>(std::make_unique<EmuExecutor>(memory_), options(nullptr));
  }
  int threads() const override { return pool_.threads(); }
  bool poisons() const override { return true; }
  std::vector<std::string> wait_sites() const override { return book_->sites(); }
  void set_trace(Trace* trace) override { trace_ = trace; }

 private:
  AsyncStream::Options options(std::mutex* one_at_a_time) {
    return {book_, delay_us_, &trace_, lanes_++, one_at_a_time};
  }

  const int64_t bytes_;
  EmuMemory memory_;
  ThreadPool pool_;
  std::mutex pool_mutex_;
  std::shared_ptr<WaitBook> book_;
  const int64_t delay_us_;
  Trace* trace_ = nullptr;
  int lanes_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_emu_device(int64_t bytes, const DeviceOptions& options) {
  return std::make_unique<EmuDevice>(bytes, options);
}

}  // namespace rondo

#include "device/emu/emu.h"

#include <sys/mman.h>

#include <chrono>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "base/error.h"
#include "device/event.h"
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

class EmuStream : public Stream {
 public:
  EmuStream(EmuMemory& memory, ThreadPool& pool, std::mutex& pool_mutex,
            std::shared_ptr<WaitBook> book, int64_t delay_us, Trace* const* trace, int lane)
      : executor_(memory, pool),
        pool_mutex_(pool_mutex),
        book_(std::move(book)),
        delay_us_(delay_us),
        trace_(trace),
        lane_(lane),
        worker_([this] { loop(); }) {}

  ~EmuStream() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  void submit(const char* name, std::function<void(Executor&)> task) override {
    push([this, name, task = std::move(task)] {
      if (error_) return;
      if (delay_us_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
      // Streams share the device's threads: one task at a time has them.
      std::lock_guard lock(pool_mutex_);
      const auto begin = Trace::Clock::now();
      task(executor_);
      if (*trace_) (*trace_)->add(name, lane_, begin, Trace::Clock::now());
    });
  }

  void record(Event& event) override {
    event.state()->arm(book_);
    push([this, state = event.state()] { state->reach(error_); });
  }

  void wait(const Event& event, const char* site) override {
    push([state = event.state(), site] { state->wait(site); });
  }

 private:
  class EmuExecutor : public Executor {
   public:
    EmuExecutor(EmuMemory& memory, ThreadPool& pool) : memory_(memory), pool_(pool) {}
    View translate(View view) override { return memory_.translate(view); }
    ThreadPool& pool() override { return pool_; }

   private:
    EmuMemory& memory_;
    ThreadPool& pool_;
  };

  void push(std::function<void()> task) {
    {
      std::lock_guard lock(mutex_);
      if (failed_) std::rethrow_exception(failed_);
      queue_.push_back(std::move(task));
    }
    changed_.notify_all();
  }

  // Runs what is queued; at the end of life, what is left too, so that no host memory is let go
  // while a task could still read it.
  void loop() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
        if (queue_.empty()) return;
        task = std::move(queue_.front());
        queue_.pop_front();
      }
      try {
        task();
      } catch (...) {
        error_ = std::current_exception();
        std::lock_guard lock(mutex_);
        failed_ = error_;
      }
    }
  }

  EmuExecutor executor_;
  std::mutex& pool_mutex_;
  std::shared_ptr<WaitBook> book_;
  const int64_t delay_us_;
  Trace* const* trace_;
  const int lane_;
  std::exception_ptr error_;  // the worker's own
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::exception_ptr failed_;
  bool stop_ = false;
  std::thread worker_;  // last: it uses the members above
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
    return std::make_unique<EmuStream>(memory_, pool_, pool_mutex_, book_, delay_us_, &trace_,
                                       lanes_++);
  }
  int threads() const override { return pool_.threads(); }
  bool poisons() const override { return true; }
  std::vector<std::string> wait_sites() const override { return book_->sites(); }
  void set_trace(Trace* trace) override { trace_ = trace; }

 private:
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

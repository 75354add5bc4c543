#include "device/cpu/cpu.h"

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "base/error.h"
#include "device/async_stream.h"
#include "device/size.h"

namespace rondo {
namespace {

constexpr int64_t kHugePage = 2 << 20;

class CpuExecutor : public Executor {
 public:
  explicit CpuExecutor(ThreadPool& pool) : pool_(&pool) {}
  // With one thread of its own.
  CpuExecutor() : own_(std::make_unique<ThreadPool>(1)), pool_(own_.get()) {}
  View translate(View view) override { return view; }
  ThreadPool& pool() override { return *pool_; }

 private:
  std::unique_ptr<ThreadPool> own_;
  ThreadPool* pool_;
};

class CpuDevice;

class CpuStream : public Stream {
 public:
  CpuStream(ThreadPool& pool, std::shared_ptr<WaitBook> book, Trace* const* trace)
      : executor_(pool), book_(std::move(book)), trace_(trace) {}

  void submit(const char* name, std::function<void(Executor&)> task) override {
    const auto begin = Trace::Clock::now();
    task(executor_);
    if (*trace_) (*trace_)->add(name, 0, begin, Trace::Clock::now());
  }
  void record(Event& event) override {
    event.state()->arm(book_);
    event.state()->reach(nullptr);
  }
  void wait(const Event& event, const char* site) override { event.wait_host(site); }

 private:
  CpuExecutor executor_;
  std::shared_ptr<WaitBook> book_;
  Trace* const* trace_;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const DeviceOptions& options)
      : pool_(options.threads), book_(std::make_shared<WaitBook>("")) {}

  std::string name() const override { return "cpu"; }

  void* allocate(int64_t bytes) override {
    const int64_t alignment = bytes >= kHugePage ? kHugePage : 64;
    const int64_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* data = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
    if (!data)
      fail_input("device cpu: no memory for {}; use a smaller model or micro-batch",
                 format_size(bytes));
    // Weights are read in panels that lie pages apart: large pages spare the translation misses.
    if (bytes >= kHugePage) ::madvise(data, static_cast<size_t>(rounded), MADV_HUGEPAGE);
    return data;
  }
  void release(void* data) override { std::free(data); }
  std::unique_ptr<Stream> make_stream(const char*) override {
    return std::make_unique<CpuStream>(pool_, book_, &trace_);
  }
  std::unique_ptr<Stream> make_transfer_stream(const char*) override {
    return std::make_unique<AsyncStream>(
        std::make_unique<CpuExecutor>(),
        AsyncStream::Options{.book = book_, .trace = &trace_, .lane = ++transfer_lanes_});
  }
  int threads() const override { return pool_.threads(); }
  bool poisons() const override { return false; }
  std::vector<std::string> wait_sites() const override { return book_->sites(); }
  void set_trace(Trace* trace) override { trace_ = trace; }

 private:
  ThreadPool pool_;
  std::shared_ptr<WaitBook> book_;
  Trace* trace_ = nullptr;
  int transfer_lanes_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const DeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace rondo

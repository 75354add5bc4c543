#include "device/async_stream.h"

#include <chrono>
#include <utility>

namespace rondo {

AsyncStream::AsyncStream(std::unique_ptr<Executor> executor, Options options)
    : executor_(std::move(executor)), options_(std::move(options)), worker_([this] { loop(); }) {}

AsyncStream::~AsyncStream() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void AsyncStream::submit(const char* name, std::function<void(Executor&)> task) {
  push([this, name, task = std::move(task)] {
    if (error_) return;
    if (options_.delay_us > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(options_.delay_us));
    std::unique_lock<std::mutex> turn;
    if (options_.one_at_a_time) turn = std::unique_lock(*options_.one_at_a_time);
    const auto begin = Trace::Clock::now();
    task(*executor_);
    if (*options_.trace) (*options_.trace)->add(name, options_.lane, begin, Trace::Clock::now());
  });
}

void AsyncStream::record(Event& event) {
  event.state()->arm(options_.book);
  push([this, state = event.state()] { state->reach(error_); });
}

void AsyncStream::wait(const Event& event, const char* site) {
  push([state = event.state(), site] { state->wait(site); });
}

void AsyncStream::push(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (failed_) std::rethrow_exception(failed_);
    queue_.push_back(std::move(task));
  }
  changed_.notify_all();
}

// Runs what is queued; at the end of life, what is left too, so that no host memory is let go while
// a task could still read it.
void AsyncStream::loop() {
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

}  // namespace rondo

// A stream with a thread of its own, which runs its tasks in order. Only device/ includes this.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "device/event.h"

namespace rondo {

class AsyncStream : public Stream {
 public:
  struct Options {
    std::shared_ptr<WaitBook> book;
    int64_t delay_us = 0;                 // before every task
    Trace* const* trace = nullptr;        // the device's, which may change
    int lane = 0;                         // in the trace
    std::mutex* one_at_a_time = nullptr;  // held while a task runs
  };
  AsyncStream(std::unique_ptr<Executor> executor, Options options);
  ~AsyncStream() override;

  void submit(const char* name, std::function<void(Executor&)> task) override;
  void record(Event& event) override;
  void wait(const Event& event, const char* site) override;

 private:
  void push(std::function<void()> task);
  void loop();

  const std::unique_ptr<Executor> executor_;
  const Options options_;
  std::exception_ptr error_;  // the worker's own
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::exception_ptr failed_;
  bool stop_ = false;
  std::thread worker_;  // last: it uses the members above
};

}  // namespace rondo

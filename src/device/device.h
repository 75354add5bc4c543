// Devices, streams and events: who runs what, where, and in what order.
//
// Device memory belongs to the device: host code never touches it, on any device. Data crosses with
// copy(). On `cpu` a device pointer happens to be readable, on `emu` reading it faults at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "base/trace.h"
#include "tensor/view.h"

namespace rondo {

// What a task sees while it runs on a stream.
class Executor {
 public:
  virtual ~Executor() = default;
  // The same view with a pointer that this task may follow. Host views and null views come back
  // unchanged. Throws InvariantError for a view outside the device's memory.
  virtual View translate(View view) = 0;
  virtual ThreadPool& pool() = 0;
};

// A point in a stream's work. Copies are the same event.
class Event {
 public:
  class State;
  Event();
  // Stops the host until the recorded point is reached. An event never recorded is reached. `site`
  // names this wait in the code, as in "train.loss": a fault test drops waits by name.
  void wait_host(const char* site) const;
  std::shared_ptr<State> state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Work in order. One host thread at a time may call a stream. A task that throws poisons the
// stream: the exception is rethrown by the next call, tasks behind it do not run.
class Stream {
 public:
  virtual ~Stream() = default;
  // `name` is a literal, for traces and messages. The function is copied and may run later: it
  // captures views and values, never references to the caller's frame.
  virtual void submit(const char* name, std::function<void(Executor&)> task) = 0;
  virtual void record(Event& event) = 0;
  // Holds this stream, not the host, until `event` is reached.
  virtual void wait(const Event& event, const char* site) = 0;
  // Stops the host until all submitted work is done.
  void synchronize(const char* site);
};

struct DeviceOptions {
  int threads = 1;  // of kernels, the stream's own thread included

  // Fault tests, on `emu` alone: a wait site that does nothing, and a delay before every task.
  std::string drop_wait;
  int64_t delay_us = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // `bytes` > 0, aligned to 64 or more. InputError when the device is full: it says how much was
  // asked, how much is there, and what to change.
  virtual void* allocate(int64_t bytes) = 0;
  virtual void release(void* data) = 0;  // no work may still use it
  // For kernels. On `cpu` their work runs inline.
  virtual std::unique_ptr<Stream> make_stream(const char* name) = 0;
  // For communication and copies that go on beside the kernels: asynchronous on every device. Its
  // tasks may block on other ranks; their pool() is one thread.
  virtual std::unique_ptr<Stream> make_transfer_stream(const char* name) = 0;
  virtual int threads() const = 0;
  // Whether memory that is handed out (anew or again) should first be filled with NaN.
  virtual bool poisons() const = 0;
  // The wait sites that this process has passed, sorted: what a fault test can drop.
  virtual std::vector<std::string> wait_sites() const = 0;
  virtual void set_trace(Trace* trace) = 0;  // may be null; must outlive the streams
};

// "cpu" or "emu:SIZE" (SIZE as 64MiB, 2GiB, or bytes). InputError for anything else: a device this
// build lacks is refused with the reason.
std::unique_ptr<Device> make_device(const std::string& spec, const DeviceOptions& options);

// dst <- src, stream-ordered; equal dtype and shape, both dense, each on host or device. Host
// memory must stay until the stream has passed (record an event behind it).
void copy(Stream& stream, View dst, View src);

}  // namespace rondo

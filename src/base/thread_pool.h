// A pool of threads that share out the tasks of one call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace rondo {

// Work is cut into tasks by its shape alone; which thread takes which task is left to chance. So a
// result whose tasks write apart, and whose reductions run in task order, has the same bits at any
// number of threads.
class ThreadPool {
 public:
  // `threads` >= 1 counts the caller of run(), which works too.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(task, worker) once for each task in [0, tasks), worker in [0, threads()), and
  // returns when all are done. The first exception of a body is rethrown here. One call at a time;
  // a body must not call run() of the same pool.
  void run(int64_t tasks, const std::function<void(int64_t task, int worker)>& body);

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

// The number of processors that this process may use.
int available_threads();

}  // namespace rondo

#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rondo {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable start, done;
  const std::function<void(int64_t, int)>* body = nullptr;
  int64_t tasks = 0;
  std::atomic<int64_t> next{0};
  std::atomic<uint64_t> generation{0};
  int running = 0;
  bool stop = false;
  std::exception_ptr error;
  std::vector<std::thread> workers;

  void work(int worker) {
    try {
      for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
        (*body)(task, worker);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next.store(tasks);
    }
  }

  void loop(int worker) {
    uint64_t seen = 0;
    while (true) {
      // A kernel call follows the last one within microseconds: look for it a short while before
      // going to sleep.
      for (int i = 0; i < 2000 && generation.load(std::memory_order_acquire) == seen; ++i) relax();
      {
        std::unique_lock lock(mutex);
        start.wait(lock, [&] { return stop || generation.load() != seen; });
        if (stop) return;
        seen = generation.load();
      }
      work(worker);
      std::lock_guard lock(mutex);
      if (--running == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), state_(std::make_unique<State>()) {
  RONDO_CHECK(threads >= 1, "threads = {}", threads);
  for (int worker = 1; worker < threads; ++worker)
    state_->workers.emplace_back([this, worker] { state_->loop(worker); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->start.notify_all();
  for (auto& worker : state_->workers) worker.join();
}

void ThreadPool::run(int64_t tasks, const std::function<void(int64_t, int)>& body) {
  if (tasks <= 0) return;
  if (threads_ == 1 || tasks == 1) {
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  State& s = *state_;
  {
    std::lock_guard lock(s.mutex);
    s.body = &body;
    s.tasks = tasks;
    s.next.store(0);
    s.running = threads_ - 1;
    s.error = nullptr;
    s.generation.fetch_add(1, std::memory_order_release);
  }
  s.start.notify_all();
  s.work(0);
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.running == 0; });
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

int available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace rondo

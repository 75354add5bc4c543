// What this machine can do at most, measured: the yardstick of MFU.
#pragma once

#include "base/thread_pool.h"

namespace rondo {

struct Peak {
  double gflops = 0;        // fp32 multiply-adds from registers, all threads of the pool
  double gigabytes = 0;     // a second, read + write of a triad over memory beyond the caches
  const char* target = "";  // the instruction set, as Highway names it
};

// Takes about a fifth of a second.
Peak measure_peak(ThreadPool& pool);

}  // namespace rondo

#include <fmt/format.h>

#include "base/thread_pool.h"
#include "commands.h"
#include "kernels/peak.h"

namespace rondo::app {

void run_doctor() {
  const int threads = available_threads();
  ThreadPool one(1), all(threads);
  const Peak single = measure_peak(one), full = measure_peak(all);
  fmt::print("build            Rondo {}, {}\n", RONDO_VERSION, RONDO_BUILD);
  fmt::print("threads          {}\n", threads);
  fmt::print("instruction set  {} (the best of this build that this processor has)\n", full.target);
  fmt::print("fp32 peak        {:.1f} GFLOP/s on one thread, {:.1f} on {} (measured)\n",
             single.gflops, full.gflops, threads);
  fmt::print("memory           {:.1f} GB/s on one thread, {:.1f} on {} (measured, triad)\n",
             single.gigabytes, full.gigabytes, threads);
  fmt::print("devices          cpu, emu:SIZE (an emulated accelerator)\n");
  fmt::print("MPI              not in this build: runs are of one rank\n");
  fmt::print("CUDA             not in this build: kernels are for the CPU\n");
}

}  // namespace rondo::app

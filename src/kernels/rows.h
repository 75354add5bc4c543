// Small helpers that kernels share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace rondo {

// Calls body(begin, end, worker) for consecutive blocks of at most `block` items out of `items`.
// The cut depends on the numbers alone, never on the threads.
template <class Body>
void for_blocks(ThreadPool& pool, int64_t items, int64_t block, Body&& body) {
  const int64_t blocks = (items + block - 1) / block;
  if (blocks == 1) return body(int64_t{0}, items, 0);
  pool.run(blocks, [&](int64_t i, int worker) {
    body(i * block, std::min(items, (i + 1) * block), worker);
  });
}

}  // namespace rondo

// What is passed down instead of globals: many ranks live in one process, each with its own.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/log.h"
#include "device/arena.h"
#include "device/device.h"
#include "device/ledger.h"

namespace rondo {

struct Context {
  // Makes stream, arena and ledger of `device`, which must outlive this; so must `log`.
  Context(Device& device, Log& log, int rank = 0, int world = 1);

  const int rank, world;
  Device& device;
  Log& log;
  Ledger ledger;
  std::unique_ptr<Stream> stream;  // compute
  Arena arena;                     // of `stream`

  // Tests and the bench choose an implementation by name for an operation; the first of the list
  // that does not refuse is taken otherwise. A forced one that refuses raises InvariantError.
  std::map<std::string, std::string> forced_kernels;

  Tensor allocate(MemoryClass c, DType dtype, std::initializer_list<int64_t> shape) {
    return arena.allocate(c, dtype, shape);
  }
  Tensor activation(std::initializer_list<int64_t> shape, DType dtype = DType::kF32) {
    return arena.allocate(MemoryClass::kActivations, dtype, shape);
  }
  void submit(const char* name, std::function<void(Executor&)> task) {
    stream->submit(name, std::move(task));
  }
};

}  // namespace rondo

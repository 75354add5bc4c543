#include "device/context.h"

namespace rondo {

Context::Context(Device& device, Log& log, int rank, int world)
    : rank(rank),
      world(world),
      device(device),
      log(log),
      stream(device.make_stream("compute")),
      arena(device, *stream, ledger) {}

}  // namespace rondo

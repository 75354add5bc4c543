// What every transport must do, as cases that all ranks of a world run together. Each transport has
// a program that runs them: threads for inproc, mpirun for mpi.
#pragma once

#include <span>

#include "comm/channel.h"
#include "comm/communicator.h"

namespace rondo::testing {

struct TransportCase {
  const char* name;
  void (*run)(Channel& world);
};
std::span<const TransportCase> transport_cases();

struct CommunicatorCase {
  const char* name;
  void (*run)(Device& device, Communicator& world);
};
std::span<const CommunicatorCase> communicator_cases();

}  // namespace rondo::testing

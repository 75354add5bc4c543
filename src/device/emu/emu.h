// An accelerator that anyone has: its own memory behind addresses that only kernels can follow, and
// streams that really run asynchronously. It keeps host code honest; it is not meant to be fast.
//
// Device pointers lie in a reserved address range without access rights, so host code that follows
// one faults at once. The bytes live elsewhere; an Executor translates. Memory is filled with NaN
// bit patterns whenever it is handed out. Each stream has a thread that runs its tasks in order.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"

namespace rondo {

std::unique_ptr<Device> make_emu_device(int64_t bytes, const DeviceOptions& options);

}  // namespace rondo

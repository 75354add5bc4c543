// The host's own processors: device memory is host memory, work runs inline in submit().
#pragma once

#include <memory>

#include "device/device.h"

namespace rondo {

std::unique_ptr<Device> make_cpu_device(const DeviceOptions& options);

}  // namespace rondo

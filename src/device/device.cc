#include "device/device.h"

#include <cstring>

#include "base/error.h"
#include "device/cpu/cpu.h"
#include "device/emu/emu.h"
#include "device/event.h"
#include "device/size.h"

namespace rondo {

Event::Event() : state_(std::make_shared<State>()) {}

void Event::wait_host(const char* site) const {
  state_->wait(site);
}

void Stream::synchronize(const char* site) {
  Event event;
  record(event);
  event.wait_host(site);
}

std::unique_ptr<Device> make_device(const std::string& spec, const DeviceOptions& options) {
  if (spec == "cpu") return make_cpu_device(options);
  if (spec.starts_with("emu:")) {
    const auto bytes = parse_size(spec.substr(4));
    if (!bytes || *bytes < (1 << 20))
      fail_input("device \"{}\": the size must be at least 1MiB, as in emu:64MiB", spec);
    return make_emu_device(*bytes, options);
  }
  if (spec.starts_with("cuda"))
    fail_input("device \"{}\": this build has no CUDA; use cpu or emu:SIZE", spec);
  fail_input("device \"{}\" is not known; use cpu or emu:SIZE, as in emu:64MiB", spec);
}

void copy(Stream& stream, View dst, View src) {
  RONDO_CHECK(dst.dtype == src.dtype && dst.elements() == src.elements() && dst.is_dense() &&
                  src.is_dense(),
              "copy of {} to {}", to_string(src), to_string(dst));
  if (dst.elements() == 0) return;
  stream.submit("copy", [dst, src](Executor& executor) {
    std::memcpy(executor.translate(dst).data, executor.translate(src).data,
                static_cast<size_t>(dst.bytes()));
  });
}

}  // namespace rondo

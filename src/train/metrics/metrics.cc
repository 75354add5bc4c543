#include "train/metrics/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace rondo {
namespace {

// The lines of steps up to `step`.
std::string kept(const std::string& path, int64_t step) {
  if (step == 0 || !fs::exists(path)) return "";
  const std::string text = read_file(path);
  std::string out;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    const Value value = parse_json(line, path);
    const Value* at = value.find("step");
    if (at && at->as_int() && *at->as_int() <= step) out += line + "\n";
  }
  return out;
}

}  // namespace

Value to_value(const StepMetrics& m) {
  Value v{Value::Object{}};
  v.set("step", m.step);
  v.set("loss", m.losses.loss);
  for (size_t d = 0; d < m.losses.mtp.size(); ++d)
    v.set("mtp_loss_" + std::to_string(d + 1), m.losses.mtp[d]);
  v.set("balance_loss", m.losses.balance);
  v.set("z_loss", m.losses.z);
  v.set("total_loss", m.losses.total);
  v.set("grad_norm", m.grad_norm);
  v.set("learning_rate", m.learning_rate);
  v.set("tokens_per_second", m.tokens_per_second);
  v.set("step_seconds", m.step_seconds);
  v.set("mfu", m.mfu);
  v.set("tokens_seen", m.tokens_seen);
  if (m.expert_load > 0) v.set("max_over_mean_expert_load", m.expert_load);
  if (m.validation_loss) v.set("validation_loss", *m.validation_loss);
  if (m.validation_bits_per_byte) v.set("validation_bits_per_byte", *m.validation_bits_per_byte);
  return v;
}

MetricsFile::MetricsFile(const std::string& path, int64_t resumed_step) : path_(path) {
  write_file_atomic(path, kept(path, resumed_step));
  fd_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) fail_input("{}: cannot be written: {}", path, std::strerror(errno));
}

MetricsFile::~MetricsFile() {
  ::close(fd_);
}

void MetricsFile::write(const StepMetrics& metrics) {
  const std::string line = to_json(to_value(metrics)) + "\n";
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    fail_input("{}: cannot be written: {}", path_, std::strerror(errno));
}

}  // namespace rondo

#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace rondo {

struct Log::Impl {
  spdlog::logger logger;
  std::mutex mutex;
  std::function<void()> before, after;
  explicit Impl(int rank)
      : logger(rank == 0 ? "rondo" : fmt::format("rondo rank {}", rank),
               std::make_shared<spdlog::sinks::stderr_sink_mt>()) {}
};

Log::Log(int rank, LogLevel least) : impl_(std::make_unique<Impl>(rank)) {
  impl_->logger.set_pattern("%n: %v");
  if (rank > 0) least = LogLevel::kWarning;
  impl_->logger.set_level(least == LogLevel::kDebug  ? spdlog::level::debug
                          : least == LogLevel::kInfo ? spdlog::level::info
                                                     : spdlog::level::warn);
}

Log::~Log() = default;

void Log::write(LogLevel level, const std::string& message) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->before) impl_->before();
  if (level == LogLevel::kWarning)
    impl_->logger.warn("warning: {}", message);
  else
    impl_->logger.log(level == LogLevel::kInfo ? spdlog::level::info : spdlog::level::debug,
                      message);
  if (impl_->after) impl_->after();
}

void Log::set_hooks(std::function<void()> before, std::function<void()> after) {
  std::lock_guard lock(impl_->mutex);
  impl_->before = std::move(before);
  impl_->after = std::move(after);
}

}  // namespace rondo

#include "base/trace.h"

#include "base/value.h"

namespace rondo {

void Trace::add(const char* name, int lane, Clock::time_point begin, Clock::time_point end) {
  const auto us = [](Clock::duration d) {
    return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
  };
  std::lock_guard lock(mutex_);
  spans_.push_back({name, lane, us(begin - start_), us(end - begin)});
}

std::string Trace::to_json(int rank) const {
  std::lock_guard lock(mutex_);
  Value::Array events;
  for (const Span& span : spans_) {
    Value event;
    event.set("name", span.name);
    event.set("ph", "X");
    event.set("pid", rank);
    event.set("tid", span.lane);
    event.set("ts", span.begin_us);
    event.set("dur", span.duration_us);
    events.push_back(std::move(event));
  }
  Value root;
  root.set("traceEvents", std::move(events));
  return rondo::to_json(root) + "\n";
}

}  // namespace rondo

// What an Event shares with the stream that records it. Only device/ includes this.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/device.h"

namespace rondo {

// What all streams of one device share about waits.
class WaitBook {
 public:
  explicit WaitBook(std::string drop) : drop_(std::move(drop)) {}
  // Notes the site; false when this wait is to be dropped.
  bool pass(const char* site) {
    std::lock_guard lock(mutex_);
    sites_.insert(site);
    return drop_ != site;
  }
  std::vector<std::string> sites() const {
    std::lock_guard lock(mutex_);
    return {sites_.begin(), sites_.end()};
  }

 private:
  const std::string drop_;
  mutable std::mutex mutex_;
  std::set<std::string> sites_;
};

class Event::State {
 public:
  // Called by a stream when it records: not reached from here on.
  void arm(std::shared_ptr<WaitBook> book) {
    std::lock_guard lock(mutex_);
    book_ = std::move(book);
    ++pending_;
  }
  void reach(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    --pending_;
    if (error) error_ = error;
    reached_.notify_all();
  }
  void wait(const char* site) {
    std::unique_lock lock(mutex_);
    if (book_ && !book_->pass(site)) return;
    reached_.wait(lock, [&] { return pending_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable reached_;
  std::shared_ptr<WaitBook> book_;
  int pending_ = 0;
  std::exception_ptr error_;
};

}  // namespace rondo

#include "comm/inproc/inproc.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"

namespace rondo {
namespace {

struct Group;

// What all ranks share: whether one of them has failed.
class World {
 public:
  explicit World(int ranks) : left_(static_cast<size_t>(ranks)) {}
  void add(const std::shared_ptr<Group>& group) {
    std::lock_guard lock(mutex_);
    groups_.push_back(group);
  }
  void fail(int rank, const std::string& cause);
  // A rank that has ended well answers nobody any more.
  void leave(int rank);
  bool left(int rank) const { return left_[static_cast<size_t>(rank)]; }
  bool failed() const { return failed_; }
  int failed_rank() const {
    std::lock_guard lock(mutex_);
    return rank_;
  }
  [[noreturn]] void throw_failure() const {
    std::lock_guard lock(mutex_);
    throw RankFailure(rank_, cause_);
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  int rank_ = -1;
  std::string cause_;
  std::vector<std::atomic<bool>> left_;
  std::vector<std::weak_ptr<Group>> groups_;

  void wake();
};

// A message that its sender waits for.
struct Posted {
  const char* call;
  const void* data;
  int64_t bytes;
  int64_t* outstanding;  // the sender's count
};

struct Group {
  Group(std::shared_ptr<World> world, std::vector<int> members)
      : world(std::move(world)),
        members(std::move(members)),
        changed(this->members.size()),
        inboxes(this->members.size() * this->members.size()) {}

  int size() const { return static_cast<int>(members.size()); }
  std::deque<Posted>& inbox(int from, int to) {
    return inboxes[static_cast<size_t>(from * size() + to)];
  }

  const std::shared_ptr<World> world;
  const std::vector<int> members;  // world ranks
  std::mutex mutex;                // of all that follows
  std::vector<std::condition_variable> changed;
  std::vector<std::deque<Posted>> inboxes;
};

void World::fail(int rank, const std::string& cause) {
  {
    std::lock_guard lock(mutex_);
    if (failed_) return;
    rank_ = rank;
    cause_ = cause;
    failed_ = true;
  }
  wake();
}

void World::leave(int rank) {
  left_[static_cast<size_t>(rank)] = true;
  wake();
}

void World::wake() {
  std::vector<std::weak_ptr<Group>> groups;
  {
    std::lock_guard lock(mutex_);
    groups = groups_;
  }
  for (const std::weak_ptr<Group>& weak : groups)
    if (const std::shared_ptr<Group> group = weak.lock()) {
      std::lock_guard lock(group->mutex);
      for (std::condition_variable& waiting : group->changed) waiting.notify_all();
    }
}

class InprocChannel : public Channel {
 public:
  InprocChannel(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  int world_rank(int rank) const override { return group_->members[static_cast<size_t>(rank)]; }
  void fail(const std::string& cause) override { group_->world->fail(world_rank(rank_), cause); }

  void exchange(const Call& call, std::span<const Message> sends,
                std::span<const Message> receives) override {
    int64_t outstanding = 0;
    std::unique_lock lock(group_->mutex);
    try {
      if (group_->world->failed()) group_->world->throw_failure();
      for (const Message& m : sends) {
        group_->inbox(rank_, m.peer).push_back({call.name, m.data, m.bytes, &outstanding});
        ++outstanding;
        notify(m.peer);
      }
      std::vector<uint8_t> arrived(receives.size(), 0);
      for (size_t left = receives.size(); left > 0;) {
        const std::optional<size_t> next = first_that_can_arrive(receives, arrived);
        if (!next) {
          for (size_t i = 0; i < receives.size(); ++i)
            if (!arrived[i]) expect_there(receives[i].peer, call);
          wait(lock);
          continue;
        }
        take(lock, call, receives[*next]);
        arrived[*next] = 1;
        --left;
      }
      while (outstanding > 0) {
        for (const Message& m : sends)
          if (!group_->inbox(rank_, m.peer).empty()) expect_there(m.peer, call);
        wait(lock);
      }
    } catch (...) {
      // Nobody may read from this rank's buffers once they are let go.
      for (int peer = 0; peer < size(); ++peer) {
        std::deque<Posted>& inbox = group_->inbox(rank_, peer);
        outstanding -= static_cast<int64_t>(
            std::erase_if(inbox, [&](const Posted& p) { return p.outstanding == &outstanding; }));
      }
      while (outstanding > 0) group_->changed[static_cast<size_t>(rank_)].wait(lock);
      throw;
    }
  }

  std::unique_ptr<Channel> split(int color, int key) override {
    struct Choice {
      int color, key;
    };
    std::vector<Choice> all(static_cast<size_t>(size()));
    Choice mine{color, key};
    std::vector<Message> sends, receives;
    for (int r = 0; r < size(); ++r) {
      sends.push_back({r, &mine, sizeof mine});
      receives.push_back({r, &all[static_cast<size_t>(r)], sizeof mine});
    }
    exchange({"split", "", true}, sends, receives);
    std::vector<int> members;  // of this group
    for (int r = 0; r < size(); ++r)
      if (all[static_cast<size_t>(r)].color == color) members.push_back(r);
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return all[static_cast<size_t>(a)].key < all[static_cast<size_t>(b)].key;
    });
    // The first makes the group and shows the others where it is, until all have seen it.
    std::shared_ptr<Group> group;
    const std::shared_ptr<Group>* shown = &group;
    sends.clear();
    receives.clear();
    if (members[0] == rank_) {
      std::vector<int> world;
      for (const int r : members) world.push_back(world_rank(r));
      group = std::make_shared<Group>(group_->world, std::move(world));
      group_->world->add(group);
      for (const int r : members)
        if (r != rank_) sends.push_back({r, &shown, sizeof shown});
    } else {
      receives.push_back({members[0], &shown, sizeof shown});
    }
    exchange({"split", "", true}, sends, receives);
    const std::shared_ptr<Group> seen = *shown;
    for (Message& m : sends) m = {m.peer, nullptr, 0};
    for (Message& m : receives) m = {m.peer, nullptr, 0};
    exchange({"split", "", true}, receives, sends);
    const auto place = std::find(members.begin(), members.end(), rank_);
    return std::make_unique<InprocChannel>(seen, static_cast<int>(place - members.begin()));
  }

 private:
  void notify(int rank) { group_->changed[static_cast<size_t>(rank)].notify_all(); }

  void expect_there(int peer, const Call& call) const {
    RONDO_CHECK(!group_->world->left(world_rank(peer)),
                "rank {} waits in {} for rank {}, which has ended", world_rank(rank_), call.name,
                world_rank(peer));
  }

  void wait(std::unique_lock<std::mutex>& lock) {
    if (group_->world->failed()) group_->world->throw_failure();
    group_->changed[static_cast<size_t>(rank_)].wait(lock);
    if (group_->world->failed()) group_->world->throw_failure();
  }

  // Of each peer only the first that has not arrived may.
  std::optional<size_t> first_that_can_arrive(std::span<const Message> receives,
                                              const std::vector<uint8_t>& arrived) {
    std::vector<uint8_t> waiting(static_cast<size_t>(size()), 0);
    for (size_t i = 0; i < receives.size(); ++i) {
      if (arrived[i] || waiting[static_cast<size_t>(receives[i].peer)]) continue;
      if (!group_->inbox(receives[i].peer, rank_).empty()) return i;
      waiting[static_cast<size_t>(receives[i].peer)] = 1;
    }
    return std::nullopt;
  }

  void take(std::unique_lock<std::mutex>& lock, const Call& call, const Message& to) {
    std::deque<Posted>& inbox = group_->inbox(to.peer, rank_);
    const Posted from = inbox.front();
    inbox.pop_front();
    lock.unlock();
    const bool fits = from.bytes == to.bytes;
    if (fits && to.bytes > 0) std::memcpy(to.data, from.data, static_cast<size_t>(to.bytes));
    lock.lock();
    --*from.outstanding;
    notify(to.peer);
    RONDO_CHECK(fits, "rank {} waits in {} for {} bytes, rank {} sends {} in {}", world_rank(rank_),
                call.name, to.bytes, world_rank(to.peer), from.bytes, from.call);
  }

  std::shared_ptr<Group> group_;
  const int rank_;
};

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that says nothing";
  }
}

struct NewWorld {
  std::shared_ptr<World> world;
  std::vector<std::unique_ptr<Channel>> channels;
};

NewWorld make_world(int ranks) {
  RONDO_CHECK(ranks > 0, "{} ranks", ranks);
  NewWorld out{std::make_shared<World>(ranks), {}};
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r) members.push_back(r);
  auto group = std::make_shared<Group>(out.world, members);
  out.world->add(group);
  for (int r = 0; r < ranks; ++r) out.channels.push_back(std::make_unique<InprocChannel>(group, r));
  return out;
}

}  // namespace

std::vector<std::unique_ptr<Channel>> make_inproc_world(int ranks) {
  return make_world(ranks).channels;
}

void run_ranks(int ranks, const std::function<void(std::unique_ptr<Channel>)>& body,
               const RankThreads& options) {
  NewWorld made = make_world(ranks);
  std::mutex mutex;
  std::condition_variable ended;
  int running = ranks;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  std::string cause;  // of the first that failed
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      std::exception_ptr error;
      try {
        body(std::move(made.channels[static_cast<size_t>(r)]));
      } catch (...) {
        error = std::current_exception();
      }
      const std::string what = error ? message_of(error) : "";
      if (error)
        made.world->fail(r, what);
      else
        made.world->leave(r);
      std::lock_guard lock(mutex);
      errors[static_cast<size_t>(r)] = error;
      if (error && made.world->failed_rank() == r) cause = fmt::format("rank {}: {}", r, what);
      --running;
      ended.notify_all();
    });
  {
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return running == 0 || !cause.empty(); });
    const bool all = ended.wait_for(lock, std::chrono::duration<double>(options.grace_seconds),
                                    [&] { return running == 0; });
    if (!all && options.stuck) options.stuck(cause);
  }
  for (std::thread& thread : threads) thread.join();
  if (!made.world->failed()) return;
  const int rank = made.world->failed_rank();
  const std::exception_ptr first = errors[static_cast<size_t>(rank)];
  if (!first) made.world->throw_failure();  // it reported a failure and went on
  try {
    std::rethrow_exception(first);
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    throw RankFailure(rank, fmt::format("rank {}: {}", rank, error.what()));
  }
}

}  // namespace rondo

// What a transport must do: move messages between the ranks of a group. Everything else (gathering,
// reducing, splitting over streams) is written once on top, so that all transports give the same
// bits. A transport with collectives of its own (NCCL) implements Communicator instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace rondo {

// A rank of the world has failed, this one or another: every rank that waits gets this, and every
// later call. `what()` is the first cause.
class RankFailure : public std::runtime_error {
 public:
  RankFailure(int rank, const std::string& cause) : std::runtime_error(cause), rank_(rank) {}
  int rank() const { return rank_; }  // in the world: the one that failed first

 private:
  int rank_;
};

// Bytes for a peer or from one. May be empty; an empty message travels like any other.
struct Message {
  int peer = 0;  // rank in the group
  void* data = nullptr;
  int64_t bytes = 0;
};

// What a call is, for messages, records and the check that all ranks call alike.
struct Call {
  const char* name;     // "all_gather", a literal
  std::string details;  // equal on all ranks of a collective: shapes, root, reduction; else empty
  bool collective = true;
};

// Called by one thread at a time, always of the rank that owns it. Different channels of a rank may
// be called by different threads at the same time. Memory is the host's.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual int rank() const = 0;  // in this group
  virtual int size() const = 0;
  virtual int world_rank(int rank) const = 0;  // of a rank of this group

  // Sends and receives at once; returns when all receives have arrived and all sends may be
  // overwritten. Sleeps while it waits. Between two ranks messages arrive in the order of the calls
  // and, within one, of the lists; sizes must agree. A rank may send to itself. Throws RankFailure
  // when any rank of the world fails, InvariantError (and so fails this rank) when sizes disagree.
  virtual void exchange(const Call& call, std::span<const Message> sends,
                        std::span<const Message> receives) = 0;

  // Ranks with the same `color` become a group, in the order of (key, rank). Every rank of this
  // group calls it.
  virtual std::unique_ptr<Channel> split(int color, int key) = 0;

  // This rank gives up: every rank of the world that waits or will wait gets RankFailure. The first
  // cause wins. Any thread; returns at once.
  virtual void fail(const std::string& cause) = 0;
};

}  // namespace rondo

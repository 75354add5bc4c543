// All that crosses ranks. Asynchronous and stream-ordered: a call starts when the work submitted to
// `stream` so far is done, and returns at once with a handle that orders a stream, or the host,
// behind it. Several calls on one communicator run in the order of the calls; calls on different
// communicators run side by side.
//
// Buffers belong to the caller. They are dense, lie on the device or the host, and must stay as
// they are until a stream or the host was ordered behind the call (after that, arena tensors may
// end as usual). An output is not read and must not overlap an input except where said.
//
// Every rank of a collective calls it with the same arguments but the buffers, in the same order.
// A failure of any rank reaches every rank: as RankFailure from the next call, or from waiting.
// Only the thread that owns the rank calls; fail() may be called by any.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "device/device.h"

namespace rondo {

// A call on its way. Copies are the same call; a default one is done.
class Work {
 public:
  Work() = default;
  explicit Work(Event done) : done_(std::move(done)) {}
  // Orders the stream behind it; the host goes on. `site` names the wait, as for Event.
  void wait(Stream& stream, const char* site) const { stream.wait(done_, site); }
  void wait_host(const char* site) const { done_.wait_host(site); }

 private:
  Event done_;
};

enum class Reduction : uint8_t { kSum, kMax };

struct Transfer {
  int peer = 0;  // rank in the group
  View view;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // out = all inputs one after another, in rank order. `counts`: elements of each rank, or empty
  // when all send in.elements().
  virtual Work all_gather(Stream& stream, const View& in, const View& out,
                          const std::vector<int64_t>& counts = {}) = 0;

  // `in` is size() parts one after another, `counts` elements each (empty: equal parts). out = sum
  // over ranks of this rank's part, added in rank order. f32, f64 or i64.
  virtual Work reduce_scatter(Stream& stream, const View& in, const View& out,
                              const std::vector<int64_t>& counts = {}) = 0;

  // data = its reduction over ranks, in rank order, in place. f32, f64 or i64.
  virtual Work all_reduce(Stream& stream, const View& data, Reduction reduction) = 0;

  // data = the root's.
  virtual Work broadcast(Stream& stream, const View& data, int root) = 0;

  // Part p of `in` goes to rank p, `send_counts` elements each; out = what came, in rank order,
  // `receive_counts` elements each.
  virtual Work all_to_all(Stream& stream, const View& in, const std::vector<int64_t>& send_counts,
                          const View& out, const std::vector<int64_t>& receive_counts) = 0;

  // Sends and receives of this rank alone, grouped: no order between them can dead-lock.
  virtual Work exchange(Stream& stream, const std::vector<Transfer>& sends,
                        const std::vector<Transfer>& receives) = 0;

  // Returns on the host when every rank has called it.
  virtual void barrier() = 0;

  // Ranks with the same color, in the order of (key, rank). Collective; returns on the host.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  virtual void fail(const std::string& cause) = 0;

  // Bytes that this rank has sent to others so far, this communicator's and its splits' together.
  virtual int64_t bytes_sent() const = 0;
};

// Runs the body; when it throws, the world learns of it before anything outside the body is taken
// down, so that nobody waits for what will not come. What uses `world` belongs outside the body,
// what may throw inside.
void failing_together(Communicator& world, const std::function<void()>& body);

// On a transport that moves host memory (cpu and emu share it). The device must outlive it.
std::unique_ptr<Communicator> make_communicator(Device& device, std::unique_ptr<Channel> channel);

}  // namespace rondo

#include "comm/communicator.h"

#include <atomic>
#include <exception>
#include <functional>
#include <utility>

#include "base/error.h"
#include "comm/collectives.h"

namespace rondo {
namespace {

// One transfer stream a communicator: its calls run there, one after another, and block there.
class StreamCommunicator : public Communicator {
 public:
  StreamCommunicator(Device& device, std::unique_ptr<Channel> channel,
                     std::shared_ptr<std::atomic<int64_t>> sent)
      : device_(device),
        state_(std::make_shared<State>(std::move(channel), std::move(sent))),
        stream_(device.make_transfer_stream("comm")) {}

  // Whoever unwinds must not wait for peers who wait for it.
  ~StreamCommunicator() override {
    if (std::uncaught_exceptions() > 0) fail("stopped by an error");
  }

  int rank() const override { return state_->channel->rank(); }
  int size() const override { return state_->channel->size(); }
  void fail(const std::string& cause) override { state_->channel->fail(cause); }
  int64_t bytes_sent() const override { return *state_->sent; }

  Work all_gather(Stream& stream, const View& in, const View& out,
                  const std::vector<int64_t>& counts) override {
    const std::vector<int64_t> each = bytes_of(counts, in.elements(), in);
    check_total("all_gather", each, out);
    RONDO_CHECK(each[static_cast<size_t>(rank())] == in.bytes(), "all_gather: {} is not {} bytes",
                to_string(in), each[static_cast<size_t>(rank())]);
    count_sent(in.bytes() * (size() - 1));
    return run(stream, "comm.all_gather", {in, out}, [each](State& s, const Views& v) {
      rondo::all_gather(*s.channel, v[0].data, each, v[1].data);
    });
  }

  Work reduce_scatter(Stream& stream, const View& in, const View& out,
                      const std::vector<int64_t>& counts) override {
    std::vector<int64_t> each = counts;
    if (each.empty()) each.assign(static_cast<size_t>(size()), out.elements());
    check_total("reduce_scatter", bytes_of(each, 0, in), in);
    RONDO_CHECK(each[static_cast<size_t>(rank())] == out.elements() && in.dtype == out.dtype,
                "reduce_scatter: {} for part {} of {}", to_string(out), rank(), to_string(in));
    count_sent(in.bytes() - out.bytes());
    return run(stream, "comm.reduce_scatter", {in, out}, [each](State& s, const Views& v) {
      rondo::reduce_scatter(*s.channel, v[0].dtype, Reduction::kSum, v[0].data, each, v[1].data,
                            s.scratch);
    });
  }

  Work all_reduce(Stream& stream, const View& data, Reduction reduction) override {
    count_sent(2 * data.bytes() * (size() - 1) / size());
    return run(stream, "comm.all_reduce", {data}, [reduction](State& s, const Views& v) {
      rondo::all_reduce(*s.channel, v[0].dtype, reduction, v[0].data, v[0].elements(), s.scratch);
    });
  }

  Work broadcast(Stream& stream, const View& data, int root) override {
    if (rank() == root) count_sent(data.bytes() * (size() - 1));
    return run(stream, "comm.broadcast", {data}, [root](State& s, const Views& v) {
      rondo::broadcast(*s.channel, v[0].data, v[0].bytes(), root);
    });
  }

  Work all_to_all(Stream& stream, const View& in, const std::vector<int64_t>& send_counts,
                  const View& out, const std::vector<int64_t>& receive_counts) override {
    const std::vector<int64_t> send = bytes_of(send_counts, 0, in);
    const std::vector<int64_t> receive = bytes_of(receive_counts, 0, out);
    check_total("all_to_all", send, in);
    check_total("all_to_all", receive, out);
    count_sent(in.bytes() - send[static_cast<size_t>(rank())]);
    return run(stream, "comm.all_to_all", {in, out}, [send, receive](State& s, const Views& v) {
      rondo::all_to_all(*s.channel, v[0].data, send, v[1].data, receive);
    });
  }

  Work exchange(Stream& stream, const std::vector<Transfer>& sends,
                const std::vector<Transfer>& receives) override {
    Views views;
    std::vector<int> peers;
    for (const Transfer& t : sends) {
      views.push_back(t.view);
      peers.push_back(t.peer);
      if (t.peer != rank()) count_sent(t.view.bytes());
    }
    for (const Transfer& t : receives) {
      views.push_back(t.view);
      peers.push_back(t.peer);
    }
    return run(stream, "comm.exchange", views,
               [peers, count = sends.size()](State& s, const Views& v) {
                 std::vector<Message> messages;
                 for (size_t i = 0; i < v.size(); ++i)
                   messages.push_back({peers[i], v[i].data, v[i].bytes()});
                 const std::span<const Message> all(messages);
                 s.channel->exchange({"exchange", "", false}, all.first(count), all.subspan(count));
               });
  }

  void barrier() override {
    run_now("comm.barrier", [](State& s) { rondo::barrier(*s.channel); });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    auto channel = std::make_shared<std::unique_ptr<Channel>>();
    run_now("comm.split", [=](State& s) { *channel = s.channel->split(color, key); });
    return std::make_unique<StreamCommunicator>(device_, std::move(*channel), state_->sent);
  }

 private:
  using Views = std::vector<View>;
  // What the stream's thread works with; alive until its last task has ended.
  struct State {
    State(std::unique_ptr<Channel> channel, std::shared_ptr<std::atomic<int64_t>> sent)
        : channel(std::move(channel)), sent(std::move(sent)) {}
    std::unique_ptr<Channel> channel;
    std::shared_ptr<std::atomic<int64_t>> sent;
    std::vector<std::byte> scratch;
  };

  void count_sent(int64_t bytes) { *state_->sent += bytes; }

  std::vector<int64_t> bytes_of(const std::vector<int64_t>& counts, int64_t equal,
                                const View& view) const {
    std::vector<int64_t> out = counts;
    if (out.empty()) out.assign(static_cast<size_t>(size()), equal);
    RONDO_CHECK(out.size() == static_cast<size_t>(size()), "{} counts for {} ranks", out.size(),
                size());
    for (int64_t& n : out) n *= static_cast<int64_t>(size_of(view.dtype));
    return out;
  }
  static void check_total(const char* name, const std::vector<int64_t>& bytes, const View& view) {
    int64_t total = 0;
    for (const int64_t n : bytes) {
      RONDO_CHECK(n >= 0, "{}: a part of {} bytes", name, n);
      total += n;
    }
    RONDO_CHECK(total == view.bytes(), "{}: parts of {} bytes for {}", name, total,
                to_string(view));
  }

  Work run(Stream& after, const char* name, Views views,
           std::function<void(State&, const Views&)> body) {
    for (const View& v : views) RONDO_CHECK(v.is_dense(), "{}: {} has gaps", name, to_string(v));
    Event ready, done;
    after.record(ready);
    stream_->wait(ready, "comm.input");
    stream_->submit(name, [state = state_, views = std::move(views),
                           body = std::move(body)](Executor& executor) mutable {
      for (View& v : views) v = executor.translate(v);
      body(*state, views);
    });
    stream_->record(done);
    return Work(done);
  }

  void run_now(const char* name, std::function<void(State&)> body) {
    stream_->submit(name, [state = state_, body = std::move(body)](Executor&) { body(*state); });
    Event done;
    stream_->record(done);
    done.wait_host(name);
  }

  Device& device_;
  std::shared_ptr<State> state_;
  std::unique_ptr<Stream> stream_;  // last: its tasks use the state
};

}  // namespace

void failing_together(Communicator& world, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    world.fail(error.what());
    throw;
  }
}

std::unique_ptr<Communicator> make_communicator(Device& device, std::unique_ptr<Channel> channel) {
  return std::make_unique<StreamCommunicator>(device, std::move(channel),
                                              std::make_shared<std::atomic<int64_t>>(0));
}

}  // namespace rondo

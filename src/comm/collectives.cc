#include "comm/collectives.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"

namespace rondo {
namespace {

// Below this all ranks exchange everything and reduce alone: one round instead of two.
constexpr int64_t kSmallReduction = 16 << 10;  // bytes

std::byte* at(void* data, int64_t offset) {
  return static_cast<std::byte*>(data) + offset;
}
// Senders only read, but a message is one for both directions.
std::byte* at(const void* data, int64_t offset) {
  return static_cast<std::byte*>(const_cast<void*>(data)) + offset;
}

std::string join(std::span<const int64_t> counts) {
  return fmt::format("{}", fmt::join(counts, " "));
}

template <class T>
void reduce_one(Reduction reduction, const void* from, int64_t count, void* to) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  if (reduction == Reduction::kSum)
    for (int64_t i = 0; i < count; ++i) y[i] += x[i];
  else
    for (int64_t i = 0; i < count; ++i)
      if (x[i] > y[i] || x[i] != x[i]) y[i] = x[i];
}

void reduce_into(DType dtype, Reduction reduction, const void* from, int64_t count, void* to) {
  switch (dtype) {
    case DType::kF32:
      return reduce_one<float>(reduction, from, count, to);
    case DType::kF64:
      return reduce_one<double>(reduction, from, count, to);
    case DType::kI64:
      return reduce_one<int64_t>(reduction, from, count, to);
    default:
      RONDO_CHECK(false, "no reduction of {}", name_of(dtype));
  }
}

const char* name_of(Reduction reduction) {
  return reduction == Reduction::kSum ? "sum" : "max";
}

}  // namespace

void all_gather(Channel& channel, const void* in, std::span<const int64_t> bytes, void* out) {
  const int rank = channel.rank();
  std::vector<Message> sends, receives;
  int64_t offset = 0;
  for (int r = 0; r < channel.size(); ++r) {
    const int64_t length = bytes[static_cast<size_t>(r)];
    if (r == rank) {
      if (length > 0 && at(out, offset) != in)
        std::memmove(at(out, offset), in, static_cast<size_t>(length));
    } else {
      sends.push_back({r, at(in, 0), bytes[static_cast<size_t>(rank)]});
      receives.push_back({r, at(out, offset), length});
    }
    offset += length;
  }
  channel.exchange({"all_gather", join(bytes)}, sends, receives);
}

void all_to_all(Channel& channel, const void* in, std::span<const int64_t> send_bytes, void* out,
                std::span<const int64_t> receive_bytes) {
  std::vector<Message> sends, receives;
  int64_t from = 0, to = 0;
  for (int r = 0; r < channel.size(); ++r) {
    const int64_t send = send_bytes[static_cast<size_t>(r)],
                  receive = receive_bytes[static_cast<size_t>(r)];
    if (r == channel.rank()) {
      RONDO_CHECK(send == receive, "all_to_all: rank {} sends itself {} bytes and expects {}", r,
                  send, receive);
      if (send > 0) std::memcpy(at(out, to), at(in, from), static_cast<size_t>(send));
    } else {
      sends.push_back({r, at(in, from), send});
      receives.push_back({r, at(out, to), receive});
    }
    from += send;
    to += receive;
  }
  channel.exchange({"all_to_all", ""}, sends, receives);
}

void reduce_scatter(Channel& channel, DType dtype, Reduction reduction, const void* in,
                    std::span<const int64_t> counts, void* out, std::vector<std::byte>& scratch) {
  const int rank = channel.rank(), size = channel.size();
  const int64_t element = static_cast<int64_t>(size_of(dtype));
  std::vector<int64_t> begins(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), int64_t{0});
  const int64_t most = *std::max_element(counts.begin(), counts.end());
  const std::string details =
      fmt::format("{} {} {}", name_of(dtype), name_of(reduction), join(counts));
  scratch.resize(static_cast<size_t>(size * std::min(most, kReducePiece) * element));
  // An empty reduction is still a call of all.
  for (int64_t first = 0; first < std::max<int64_t>(most, 1); first += kReducePiece) {
    const auto length = [&](int r) {
      return std::clamp<int64_t>(counts[static_cast<size_t>(r)] - first, 0, kReducePiece);
    };
    const int64_t own = length(rank);
    std::vector<Message> sends, receives;
    for (int r = 0; r < size; ++r) {
      if (r == rank) continue;
      if (length(r) > 0)
        sends.push_back(
            {r, at(in, (begins[static_cast<size_t>(r)] + first) * element), length(r) * element});
      if (own > 0) receives.push_back({r, scratch.data() + r * own * element, own * element});
    }
    channel.exchange({"reduce_scatter", details}, sends, receives);
    if (own == 0) continue;
    // This rank's part joins the others: `out` may be where it lies.
    std::memcpy(scratch.data() + rank * own * element,
                at(in, (begins[static_cast<size_t>(rank)] + first) * element),
                static_cast<size_t>(own * element));
    std::byte* to = at(out, first * element);
    std::memcpy(to, scratch.data(), static_cast<size_t>(own * element));
    for (int r = 1; r < size; ++r)
      reduce_into(dtype, reduction, scratch.data() + r * own * element, own, to);
  }
}

void all_reduce(Channel& channel, DType dtype, Reduction reduction, void* data, int64_t count,
                std::vector<std::byte>& scratch) {
  const int size = channel.size();
  const int64_t element = static_cast<int64_t>(size_of(dtype));
  if (count * element <= kSmallReduction) {
    const std::vector<int64_t> bytes(static_cast<size_t>(size), count * element);
    scratch.resize(static_cast<size_t>(size * count * element));
    all_gather(channel, data, bytes, scratch.data());
    if (count == 0) return;
    std::memcpy(data, scratch.data(), static_cast<size_t>(count * element));
    for (int r = 1; r < size; ++r)
      reduce_into(dtype, reduction, scratch.data() + r * count * element, count, data);
    return;
  }
  std::vector<int64_t> counts(static_cast<size_t>(size)), bytes;
  for (int r = 0; r < size; ++r)
    counts[static_cast<size_t>(r)] = count * (r + 1) / size - count * r / size;
  for (const int64_t n : counts) bytes.push_back(n * element);
  std::byte* part = at(data, count * channel.rank() / size * element);
  reduce_scatter(channel, dtype, reduction, data, counts, part, scratch);
  all_gather(channel, part, bytes, data);
}

void broadcast(Channel& channel, void* data, int64_t bytes, int root) {
  std::vector<Message> sends, receives;
  if (channel.rank() != root)
    receives.push_back({root, data, bytes});
  else
    for (int r = 0; r < channel.size(); ++r)
      if (r != root) sends.push_back({r, data, bytes});
  channel.exchange({"broadcast", fmt::format("{} bytes from {}", bytes, root)}, sends, receives);
}

// In round k everyone hears from the rank 2^k before it: after log2(P) rounds from all.
void barrier(Channel& channel) {
  const int rank = channel.rank(), size = channel.size();
  for (int step = 1; step < size; step *= 2) {
    const Message to{(rank + step) % size, nullptr, 0},
        from{(rank - step + size) % size, nullptr, 0};
    channel.exchange({"barrier", ""}, {&to, 1}, {&from, 1});
  }
}

}  // namespace rondo

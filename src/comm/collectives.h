// Collectives on host memory, made of messages: once for all transports, so that all give the same
// bits. Blocking. Every rank of the channel calls alike; `bytes` or `counts` have one entry a rank
// and are the same everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/channel.h"
#include "comm/communicator.h"
#include "tensor/dtype.h"

namespace rondo {

// out = the parts of all ranks one after another; `in` is this rank's.
void all_gather(Channel& channel, const void* in, std::span<const int64_t> bytes, void* out);

// Part p of `in` to rank p; out = what came, in rank order.
void all_to_all(Channel& channel, const void* in, std::span<const int64_t> send_bytes, void* out,
                std::span<const int64_t> receive_bytes);

// Reductions add in rank order, element by element, in their own dtype: f32, f64 or i64. So the sum
// does not depend on the transport, nor on how it is cut. A maximum with NaN is NaN. Pieces of
// kReducePiece elements pass through a scratch of size() pieces.
constexpr int64_t kReducePiece = 64 << 10;
void reduce_scatter(Channel& channel, DType dtype, Reduction reduction, const void* in,
                    std::span<const int64_t> counts, void* out, std::vector<std::byte>& scratch);
void all_reduce(Channel& channel, DType dtype, Reduction reduction, void* data, int64_t count,
                std::vector<std::byte>& scratch);

void broadcast(Channel& channel, void* data, int64_t bytes, int root);
void barrier(Channel& channel);

}  // namespace rondo

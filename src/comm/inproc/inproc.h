// The embedded transport: ranks are threads of one process. A receiver copies straight from the
// sender's buffer, so nothing is stored on the way.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/channel.h"

namespace rondo {

// The channels of a new world, by rank. Each goes to the thread that is that rank.
std::vector<std::unique_ptr<Channel>> make_inproc_world(int ranks);

struct RankThreads {
  // How long the others have to stop once a rank has failed, and who is called, with the first
  // cause, when one has not: it must end the process.
  double grace_seconds = 8;
  std::function<void(const std::string& cause)> stuck;
};

// Runs body(channel) on one thread a rank and returns when all have ended. A body that throws fails
// the world; when all have ended the first cause is thrown again here, as it was thrown, with
// `rank N: ` before its message where it is no InputError.
void run_ranks(int ranks, const std::function<void(std::unique_ptr<Channel>)>& body,
               const RankThreads& options = {});

}  // namespace rondo

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "comm/inproc/inproc.h"
#include "commands.h"
#include "train/run.h"

namespace rondo::app {

namespace {

// A rank that does not stop after another has failed: nothing else would end it.
void end_process(const std::string& cause) {
  std::fprintf(stderr, "rondo: %s\n", cause.c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

}  // namespace

void run_train(const TrainCommand& command, Log& log) {
  const RunConfig config = load_run_config(command.config, command.set);
  TrainOptions options;
  options.out =
      command.out.empty() ? "runs/" + fs::path(command.config).stem().string() : command.out;
  options.resume = command.resume;
  options.terminal = isatty(STDOUT_FILENO) == 1;
  Trace trace;
  if (!command.trace.empty()) options.trace = &trace;
  std::vector<std::string> sites;
  if (!command.wait_sites.empty()) options.wait_sites = &sites;
  if (command.ranks < 1 || command.ranks > 1024)
    fail_input("--ranks is {}; it must be 1 to 1024", command.ranks);
  const int ranks = static_cast<int>(command.ranks);
  if (ranks == 1) {
    train(config, options, log);
  } else {
    const auto one_rank = [&](std::unique_ptr<Channel> channel) {
      Log quiet(channel->rank(), LogLevel::kWarning);
      Log& mine = channel->rank() == 0 ? log : quiet;
      train(config, options, mine, {std::move(channel), ranks});
    };
    run_ranks(ranks, one_rank, {.stuck = end_process});
  }
  if (options.wait_sites) {
    std::string lines;
    for (const std::string& site : sites) lines += site + "\n";
    write_file_atomic(command.wait_sites, lines);
  }
  if (!command.trace.empty()) write_file_atomic(command.trace, trace.to_json(0));
}

}  // namespace rondo::app

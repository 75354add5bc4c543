#include <unistd.h>

#include "base/file.h"
#include "commands.h"
#include "train/run.h"

namespace rondo::app {

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
  train(config, options, log);
  if (options.wait_sites) {
    std::string lines;
    for (const std::string& site : sites) lines += site + "\n";
    write_file_atomic(command.wait_sites, lines);
  }
  if (!command.trace.empty()) write_file_atomic(command.trace, trace.to_json(0));
}

}  // namespace rondo::app

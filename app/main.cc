// Exit codes: 0 done; 1 a run that could not go on (NaN, out of memory); 2 bad input; 70 a fault in
// Rondo.
#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"
#include "comm/channel.h"
#include "commands.h"
#include "train/guard/guard.h"

namespace rondo::app {
namespace {

void run(const Request& request, Log& log) {
  switch (request.kind) {
    case Request::Kind::kTrain:
      return run_train(request.train, log);
    case Request::Kind::kEval:
      return run_eval(request.eval, log);
    case Request::Kind::kGenerate:
      return run_generate(request.generate, log);
    case Request::Kind::kPack:
      return run_pack(request.pack, log);
    case Request::Kind::kTrainTokenizer:
      return run_train_tokenizer(request.train_tokenizer, log);
    case Request::Kind::kInspect:
      return run_inspect(request.inspect);
    case Request::Kind::kDoctor:
      return run_doctor();
    case Request::Kind::kNone:
      return;
  }
}

int complain(const char* what, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "rondo: %s\n", what);
  return code;
}

}  // namespace
}  // namespace rondo::app

int main(int argc, char** argv) {
  using namespace rondo;
  try {
    const app::Request request = app::parse_command_line(argc, argv);
    if (request.kind == app::Request::Kind::kNone) return request.exit_code;
    Log log;
    app::run(request, log);
    return 0;
  } catch (const InputError& error) {
    return app::complain(error.what(), 2);
  } catch (const RunFailure& error) {
    return app::complain(error.what(), 1);
  } catch (const RankFailure& error) {
    return app::complain(error.what(), 1);
  } catch (const std::bad_alloc&) {
    return app::complain("out of memory; a smaller micro_batch_size or sequence_length needs less",
                         1);
  } catch (const std::exception& error) {
    return app::complain(error.what(), 70);
  }
}

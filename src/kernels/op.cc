#include "kernels/op.h"

namespace rondo::detail {

size_t choose(const Context& ctx, const char* op, std::span<const Candidate> candidates) {
  const auto forced = ctx.forced_kernels.find(op);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (forced == ctx.forced_kernels.end()) {
      if (!candidates[i].refusal) return i;
    } else if (forced->second == candidates[i].name) {
      RONDO_CHECK(!candidates[i].refusal, "{}: the forced implementation {} refuses: {}", op,
                  candidates[i].name, candidates[i].refusal);
      return i;
    }
  }
  std::string all;
  for (const Candidate& c : candidates) {
    if (!all.empty()) all += "; ";
    all += std::string(c.name) + ": " + (c.refusal ? c.refusal : "takes it");
  }
  RONDO_CHECK(forced == ctx.forced_kernels.end(), "{}: there is no implementation {} ({})", op,
              forced->second, all);
  RONDO_CHECK(false, "{}: every implementation refuses ({})", op, all);
  return 0;
}

}  // namespace rondo::detail

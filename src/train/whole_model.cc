#include "train/whole_model.h"

#include "base/error.h"

namespace rondo {
namespace {

View on_host(std::vector<float>& values, int64_t begin, int64_t end) {
  return View(values.data() + begin, DType::kF32, Memory::kHost, {end - begin});
}

}  // namespace

WholeModel::WholeModel(const ModelConfig& config, const ParameterTable& mine, const Ranks& ranks)
    : config_(config),
      mine_(mine),
      table_(ParameterTable::build(config)),
      groups_(ranks.groups()),
      first_(ranks.first()) {}

std::vector<float> WholeModel::held(std::vector<float> whole) const {
  if (!split()) return whole;
  std::vector<float> out(static_cast<size_t>(mine_.flat_elements()), 0.f);
  copy_rows(table_, whole, mine_, out);
  return out;
}

std::vector<float> WholeModel::gather(Stream& stream, const View& held) const {
  // The experts that the first rank lacks are on the ranks of its expert group: the first ones.
  const bool sends = split() && groups_.expert_data == nullptr
                         ? !first_
                         : split() && groups_.expert_data->rank() == 0 && !first_;
  if (!first_ && !sends) return {};
  std::vector<float> own(static_cast<size_t>(held.elements()));
  copy(stream, on_host(own, 0, held.elements()), held);
  stream.synchronize("train.gather");
  if (!split()) return own;
  if (sends) {
    const View experts = on_host(own, mine_.expert_begin(), mine_.flat_elements());
    groups_.expert->exchange(stream, {{0, experts}}, {}).wait_host("train.gather");
    return {};
  }
  std::vector<float> whole(static_cast<size_t>(table_.flat_elements()), 0.f);
  copy_rows(mine_, own, table_, whole);
  for (int r = 1; r < groups_.expert->size(); ++r) {
    const ParameterTable theirs =
        ParameterTable::build(config_, held_experts(config_, groups_.expert->size(), r));
    // What is not of experts is this rank's own: it is the same on every rank.
    std::vector<float> part = own;
    part.resize(static_cast<size_t>(theirs.flat_elements()));
    RONDO_CHECK(theirs.expert_begin() == mine_.expert_begin(), "{} and {}", theirs.expert_begin(),
                mine_.expert_begin());
    groups_.expert
        ->exchange(stream, {}, {{r, on_host(part, theirs.expert_begin(), theirs.flat_elements())}})
        .wait_host("train.gather");
    copy_rows(theirs, part, table_, whole);
  }
  return whole;
}

}  // namespace rondo

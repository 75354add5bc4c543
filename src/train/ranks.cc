#include "train/ranks.h"

#include "base/error.h"
#include "base/hash.h"

namespace rondo {

Ranks::Ranks(Stream& stream, Communicator* world, const Mesh& mesh, TokenPlacement placement,
             int64_t wave_tokens)
    : stream_(stream), placement_(placement) {
  if (!world || world->size() == 1) return;
  groups_.world = world;
  const int rank = world->rank();
  const auto split = [&](Axis axis) {
    return world->split(mesh.color(axis, rank), mesh.coordinate(axis, rank));
  };
  const auto group = [&](Axis axis, std::unique_ptr<Communicator>& own, Communicator*& seen) {
    if (mesh.size(axis) > 1) own = split(axis);
    seen = own.get();
  };
  group(Axis::kData, data_, groups_.data);
  group(Axis::kContext, context_, groups_.context);
  group(Axis::kExpert, expert_, groups_.expert);
  group(Axis::kExpertData, expert_data_, groups_.expert_data);
  if (!expert_) groups_.expert_data = nullptr;
  groups_.wave_tokens = wave_tokens;
}

Batch Ranks::part(Batch whole, int64_t window) const {
  if (!context_) return whole;
  return part_of(whole, place_tokens(placement_, whole.places, context_->size()), context_->rank(),
                 window);
}

namespace {

void sum(Stream& stream, Communicator* group, const View& view) {
  if (group) group->all_reduce(stream, view, Reduction::kSum).wait_host("train.sum_over_ranks");
}

}  // namespace

void Ranks::sum_over_data(std::vector<double>& values) const {
  const int64_t n = static_cast<int64_t>(values.size());
  sum(stream_, groups_.data, View(values.data(), DType::kF64, Memory::kHost, {n}));
}

BatchCounts Ranks::sum_over_data(const BatchCounts& counts) const {
  const size_t depths = counts.mtp_labels.size();
  std::vector<int64_t> all = {counts.tokens, counts.labels};
  all.insert(all.end(), counts.mtp_labels.begin(), counts.mtp_labels.end());
  all.insert(all.end(), counts.mtp_tokens.begin(), counts.mtp_tokens.end());
  const int64_t n = static_cast<int64_t>(all.size());
  sum(stream_, groups_.data, View(all.data(), DType::kI64, Memory::kHost, {n}));
  BatchCounts out{all[0], all[1], {}, {}};
  const auto first = all.begin() + 2, middle = first + static_cast<std::ptrdiff_t>(depths);
  out.mtp_labels.assign(first, middle);
  out.mtp_tokens.assign(middle, all.end());
  return out;
}

double Ranks::sum_over_all(double value) const {
  sum(stream_, groups_.world, View(&value, DType::kF64, Memory::kHost, {1}));
  return value;
}

void Ranks::expect_same(const std::string& what, const std::string& text) const {
  if (!groups_.world) return;
  int64_t mine = static_cast<int64_t>(hash64(text));
  std::vector<int64_t> all(static_cast<size_t>(size()));
  groups_.world
      ->all_gather(stream_, View(&mine, DType::kI64, Memory::kHost, {1}),
                   View(all.data(), DType::kI64, Memory::kHost, {size()}))
      .wait_host("train.expect_same");
  for (int r = 1; r < size(); ++r)
    if (all[static_cast<size_t>(r)] != all[0])
      fail_input("rank {} was started with another {} than rank 0; give all ranks the same", r,
                 what);
}

void Ranks::barrier() const {
  if (groups_.world) groups_.world->barrier();
}

}  // namespace rondo

#include "memory/saved.h"

#include "base/error.h"

namespace rondo {

void Saved::save(int64_t micro_batch, int64_t layer, SavedClass, std::string_view name,
                 Tensor tensor) {
  if (!keep_) return;
  const bool fresh = tensors_.emplace(Key{micro_batch, layer, name}, std::move(tensor)).second;
  RONDO_CHECK(fresh, "micro-batch {}, layer {}: {} was saved before", micro_batch, layer, name);
}

View Saved::fetch(int64_t micro_batch, int64_t layer, std::string_view name) const {
  const auto it = tensors_.find(Key{micro_batch, layer, name});
  RONDO_CHECK(it != tensors_.end(), "micro-batch {}, layer {}: {} was not saved", micro_batch,
              layer, name);
  return it->second;
}

bool Saved::has(int64_t micro_batch, int64_t layer, std::string_view name) const {
  return tensors_.contains(Key{micro_batch, layer, name});
}

void Saved::release(int64_t micro_batch, int64_t layer) {
  const auto begin = tensors_.lower_bound(Key{micro_batch, layer, std::string_view()});
  auto end = begin;
  while (end != tensors_.end() && std::get<0>(end->first) == micro_batch &&
         std::get<1>(end->first) == layer)
    ++end;
  tensors_.erase(begin, end);
}

}  // namespace rondo

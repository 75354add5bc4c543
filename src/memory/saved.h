// What layers keep for backward. One place, so that a policy can later drop and recompute a class
// of tensors, or move it off the device, without a change in any layer.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "device/context.h"

namespace rondo {

// What a saved tensor is: policies speak of classes, not of layers.
enum class SavedClass : uint8_t {
  kAttentionInput,   // queries, keys, values
  kAttentionOutput,  // output and log-sum-exp
  kLatent,           // low-rank projections
  kGateUp,           // input of SwiGLU
  kExpertInput,      // what experts read
  kNorm,             // inverse root mean squares
  kResidual,         // the residual stream
  kRouting,          // routing handles, scores
  kGradient,         // between backward_input and backward_weight
};

// Tensors by (micro-batch, layer, name). A name is a literal, unique within its layer. A layer
// saves at the end of its forward: when nothing is to be kept (evaluation) the tensor ends there.
class Saved {
 public:
  explicit Saved(bool keep = true) : keep_(keep) {}

  // Takes the tensor; the view stays valid until release().
  void save(int64_t micro_batch, int64_t layer, SavedClass c, std::string_view name, Tensor tensor);
  // InvariantError when it was never saved.
  View fetch(int64_t micro_batch, int64_t layer, std::string_view name) const;
  bool has(int64_t micro_batch, int64_t layer, std::string_view name) const;
  void release(int64_t micro_batch, int64_t layer);  // all of a layer
  bool keeps() const { return keep_; }
  bool empty() const { return tensors_.empty(); }

 private:
  using Key = std::tuple<int64_t, int64_t, std::string_view>;
  bool keep_;
  std::map<Key, Tensor> tensors_;
};

}  // namespace rondo

// What routed experts do with their rows: on this rank alone, or on the ranks of the expert axis.
#pragma once

#include <memory>

#include "model/layers/pass.h"

namespace rondo {

// How a gradient finds its way from copies to the router: ops/router.h.
struct CopyGradients {
  View slot_row;      // i32 [T, k]
  View d_row_weight;  // [rows]
};

class Experts {
 public:
  virtual ~Experts() = default;
  // y = the weighted sum of each token's experts, plus `addend` (may be y, or null). begin() takes
  // the choice: what is submitted between the two runs beside the exchange of counts.
  virtual void begin(const Pass& pass, const View& h, const View& chosen, const View& weights) = 0;
  virtual void finish(const Pass& pass, const View& h, const View& addend, const View& y) = 0;
  // dh = the gradient through the experts, plus `addend` (may be dh, or null). Their weights'
  // gradients are added by this or by backward_weight().
  virtual CopyGradients backward_input(const Pass& pass, const View& h, const View& dy,
                                       const View& addend, const View& dh) = 0;
  virtual void backward_weight(const Pass& pass, const View& h, const View& dy) = 0;
};

struct ExpertShape {
  int64_t layer, experts, inner, k;
  View counts;  // i64 [experts], added to
};

// All experts here: rows never leave.
std::unique_ptr<Experts> make_local_experts(const ExpertShape& shape, const Weight& gate_up,
                                            const Weight& down);
// Each rank of the expert axis has some: pass.dispatch brings rows there and back. Backward fetches
// inputs again instead of keeping what others sent.
std::unique_ptr<Experts> make_dispatched_experts(const ExpertShape& shape, const Weight& gate_up,
                                                 const Weight& down);

}  // namespace rondo

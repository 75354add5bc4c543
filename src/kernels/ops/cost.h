// What an operation costs, stated beside its definition and read by bench, metrics and planner.
// Needs no device header.
#pragma once

namespace rondo {

struct Cost {
  double model_flops = 0;     // what the mathematics asks for: multiply and add count 2
  double executed_flops = 0;  // what is really computed (recomputation, whole tiles)
  double bytes = 0;           // least traffic: every input read once, every output written once
};

inline Cost operator+(Cost a, const Cost& b) {
  return {a.model_flops + b.model_flops, a.executed_flops + b.executed_flops, a.bytes + b.bytes};
}

}  // namespace rondo

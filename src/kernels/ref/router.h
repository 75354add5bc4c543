#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ops/router.h"

namespace rondo::ref {

const char* router(const RouterArgs& args, KernelEnv& env);
const char* router_backward(const RouterBackwardArgs& args, KernelEnv& env);

template <class T>
double log_sum_exp(const T* x, int64_t n) {
  double most = x[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) most = std::max(most, double(x[i]));
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - most);
  return most + std::log(sum);
}

// ln(sigmoid(x)) without cancellation or overflow at either sign.
inline double log_sigmoid(double x) {
  return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x)));
}

// The logarithm of every score of a row.
template <class T>
void log_scores(const T* x, RouterRule::Scoring scoring, std::vector<double>& out) {
  const auto n = static_cast<int64_t>(out.size());
  const bool softmax = scoring == RouterRule::Scoring::kSoftmax;
  const double norm = softmax ? log_sum_exp(x, n) : 0;
  for (int64_t i = 0; i < n; ++i) out[i] = softmax ? x[i] - norm : log_sigmoid(x[i]);
}

}  // namespace rondo::ref

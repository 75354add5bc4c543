// Worked examples: the right numbers from every implementation, not only from the reference.
#pragma once

#include "conformance.h"

namespace rondo::testing {

// Builds, runs and hands to `check` the arguments, in f32 for each implementation that takes them
// and in f64 for the reference.
template <class Args, class Check>
void each_implementation(const Builder<Args>& build, Check check) {
  for (const Implementation<Args>& implementation : implementations<Args>())
    for (const DType floating : {DType::kF32, DType::kF64}) {
      Buffers buffers(floating);
      const Args args = build(buffers);
      if (implementation.refuse && implementation.refuse(args)) continue;
      SCOPED_TRACE(std::string(implementation.name) + " in " + name_of(floating));
      run_once(implementation, args, 2);
      check(args);
    }
}

inline void expect_near(const View& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.elements(), static_cast<int64_t>(want.size()));
  for (int64_t i = 0; i < got.elements(); ++i)
    EXPECT_NEAR(element(got, i), want[i], tolerance) << "element " << i;
}

// k different experts a token, -1 for padding (doc < 0).
inline std::vector<int32_t> some_experts(const View& places, int64_t experts, int64_t k) {
  std::vector<int32_t> out;
  for (int64_t t = 0; t < places.rows(); ++t)
    for (int64_t j = 0; j < k; ++j)
      out.push_back(element(places, 4 * t + 2) < 0
                        ? -1
                        : static_cast<int32_t>((t * t + 3 * t + j) % experts));
  return out;
}

inline void poison_row(const View& view, int64_t r) {
  for (int64_t i = 0; i < view.cols(); ++i)
    set_element(view, r * view.cols() + i, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace rondo::testing

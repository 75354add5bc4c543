#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/view.h"

namespace rondo {
namespace {

TEST(DType, EveryF16ValueReadsBackTheSame) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const F16 half{static_cast<uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(to_float(to_f16(value))));
    else
      EXPECT_EQ(to_f16(value).bits, bits);
  }
}

TEST(DType, RoundsToNearestTiesToEven) {
  EXPECT_EQ(to_bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.00390625f).bits, 0x3f80);  // 1 + 2^-8: a tie, to even
  EXPECT_EQ(to_bf16(1.01171875f).bits, 0x3f82);  // 1 + 3 * 2^-8: a tie, to even
  EXPECT_EQ(to_bf16(3.4e38f).bits, 0x7f80);      // rounds up to infinity
  EXPECT_EQ(to_f16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(0x1p-25f).bits, 0);  // a tie with 0
  EXPECT_EQ(to_f16(0x1.8p-25f).bits, 1);
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::nanf("")))));
}

TEST(View, SlicesAndIndexesWithoutCopying) {
  std::vector<float> data(24);
  const View view(data.data(), DType::kF32, Memory::kHost, {2, 3, 4});
  EXPECT_EQ(view[1].as<float>(), data.data() + 12);
  EXPECT_EQ(view[1].slice(1, 2, 4).as<float>(), data.data() + 14);
  EXPECT_FALSE(view[1].slice(1, 2, 4).is_dense());
  EXPECT_TRUE(view[1].slice(0, 1, 3).is_dense());
  EXPECT_EQ(to_string(view.matrix()), "f32[6, 4]");
  EXPECT_THROW(view.reshape({5, 5}), InvariantError);
  EXPECT_THROW(view.as<int32_t>(), InvariantError);
  EXPECT_THROW(view.slice(0, 1, 3), InvariantError);
}

}  // namespace
}  // namespace rondo

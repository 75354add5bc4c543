#include "model/flops.h"

#include <gtest/gtest.h>

#include "model/model_testing.h"

namespace rondo {
namespace {

double giga_per_token(const ModelConfig& config, int64_t length, bool mtp = false) {
  const double tokens = static_cast<double>(length);
  return training_flops(config, tokens, visible_pairs({length}), mtp) / tokens / 1e9;
}

TEST(Flops, DeepSeekV3InTraining) {
  const ModelConfig c = read_config(kDeepSeekV3);
  EXPECT_NEAR(giga_per_token(c, 4096), 250.46, 0.005);
  EXPECT_NEAR(giga_per_token(c, 32 << 10), 465, 0.5);
  EXPECT_NEAR(giga_per_token(c, 128 << 10), 1202, 0.5);
  EXPECT_NEAR(giga_per_token(c, 256 << 10), 2185, 0.5);
}

TEST(Flops, VisiblePairs) {
  EXPECT_EQ(visible_pairs({}), 0);
  EXPECT_EQ(visible_pairs({64}), 2080);
  EXPECT_EQ(visible_pairs({1, 0, 3}), 7);
  EXPECT_EQ(visible_pairs({5}, 2), 9);  // 1 2 2 2 2
  EXPECT_EQ(visible_pairs({2}, 9), 3);
}

// Counted by hand from the shapes of the tables; one token that sees itself and one more.
TEST(Flops, SmallModelsByHand) {
  const double attention = 6 * 4 + 4 * 12 + 6 * 7 + 5 * 14 + 6 * 6;
  const double dense = 3 * 6 * 5, routed = 3 * 6 * (2 + 2) * 3 + 6 * 4, head = 11 * 6;
  const double pair = 2 * (6 + 3);
  const ModelConfig c = read_config(kTinyDeepSeek);
  EXPECT_EQ(forward_flops(c, 1, 2, false),
            2 * (2 * attention + dense + routed + head + 2 * 2 * pair));
  EXPECT_EQ(forward_flops(c, 1, 2, true) - forward_flops(c, 1, 2, false),
            2 * (attention + routed + head + 6 * 12 + 2 * pair));
  EXPECT_EQ(training_flops(c, 5, 9, true), 3 * forward_flops(c, 5, 9, true));
  const ModelConfig no_rank = read_config(kTinyDeepSeek, R"({"q_lora_rank": null})");
  EXPECT_EQ(forward_flops(no_rank, 1, 0, false) - forward_flops(c, 1, 0, false),
            2 * 2 * (6 * 12 - 6 * 4 - 4 * 12));

  const double qwen_attention = 8 * 8 + 2 * 8 * 4 + 8 * 8;
  EXPECT_EQ(forward_flops(read_config(kTinyQwen), 1, 0, false),
            2 * (2 * qwen_attention + 3 * 8 * 5 + 3 * 8 * 2 * 3 + 8 * 3 + 11 * 8));
}

}  // namespace
}  // namespace rondo

#include "kernels/ops/adamw.h"

#include <cmath>

#include "each_implementation.h"

namespace rondo::testing {
namespace {

AdamWArgs adamw(Buffers& b, int64_t n, int64_t step) {
  AdamWArgs a;
  a.p = b.random({n});
  a.m = b.random({n}, -0.1, 0.1);
  a.v = b.random({n}, 0, 0.01);
  a.grad = b.random({n});
  a.lr = 3e-3;
  a.weight_decay = 0.1;
  a.grad_scale = 0.37;
  a.step = step;
  return a;
}

TEST(AdamW, Step) {
  for (const int64_t n : {0, 1, 7, 64, 1031, 70001})
    for (const int64_t step : {1, 10, 100000})
      conform<AdamWArgs>(std::to_string(n) + " at step " + std::to_string(step),
                         [&](Buffers& b) { return adamw(b, n, step); });
}

TEST(AdamW, Matrix) {
  conform<AdamWArgs>("matrix", [&](Buffers& b) {
    AdamWArgs a;
    a.p = b.random({5, 3, 7});
    a.m = b.random({5, 3, 7});
    a.v = b.random({5, 3, 7}, 0, 1);
    a.grad = b.random({5, 3, 7});
    a.lr = 1e-2;
    return a;
  });
}

// The numbers of torch.optim.AdamW in double (lr 0.1, betas 0.9 and 0.999, eps 1e-8, decay 0.01),
// two steps of gradient 0.5, then -0.25, from p = 1: worked by hand from its source.
TEST(AdamW, ByHand) {
  each_implementation<AdamWArgs>(
      [](Buffers& b) {
        AdamWArgs a;
        a.p = b.values({1}, {1});
        a.m = b.values({1}, {0});
        a.v = b.values({1}, {0});
        a.grad = b.values({1}, {0.5});
        a.lr = 0.1;
        a.beta2 = 0.999;
        a.weight_decay = 0.01;
        return a;
      },
      [](const AdamWArgs& a) {
        // The first step is lr whatever the gradient: m / (1 - b1) = g, sqrt(v / (1 - b2)) = |g|.
        expect_near(a.m, {0.05}, 1e-8);
        EXPECT_LT(element(a.p, 0), 0.9);
        expect_near(a.v, {0.00025}, 1e-10);
        expect_near(a.p, {0.999 - 0.1}, 2e-7);
      });
  each_implementation<AdamWArgs>(
      [](Buffers& b) {
        AdamWArgs a;
        a.p = b.values({1}, {0.899});
        a.m = b.values({1}, {0.05});
        a.v = b.values({1}, {0.00025});
        a.grad = b.values({1}, {-1});
        a.grad_scale = 0.25;
        a.lr = 0.1;
        a.beta2 = 0.999;
        a.weight_decay = 0.01;
        a.step = 2;
        return a;
      },
      [](const AdamWArgs& a) {
        expect_near(a.m, {0.02}, 1e-8);
        expect_near(a.v, {0.00031225}, 1e-10);
        const double denominator = std::sqrt(0.00031225 / (1 - 0.999 * 0.999)) + 1e-8;
        expect_near(a.p, {0.899 * 0.999 - 0.1 * 0.02 / 0.19 / denominator}, 2e-7);
      });
}

// No gradient ever: nothing but decay, and no 0 / 0.
TEST(AdamW, ZeroGradient) {
  each_implementation<AdamWArgs>(
      [](Buffers& b) {
        AdamWArgs a;
        a.p = b.values({3}, {1, -2, 0});
        a.m = b.values({3}, {0, 0, 0});
        a.v = b.values({3}, {0, 0, 0});
        a.grad = b.values({3}, {0, 0, 0});
        a.lr = 0.5;
        a.weight_decay = 0.5;
        return a;
      },
      [](const AdamWArgs& a) {
        expect_near(a.p, {0.75, -1.5, 0}, 0);
      });
}

View counts_of(Buffers& b, const std::vector<int64_t>& counts) {
  const View view = b.int_output(DType::kI64, {static_cast<int64_t>(counts.size())});
  std::copy(counts.begin(), counts.end(), view.as<int64_t>());
  return view;
}

void bias_example(const std::vector<int64_t>& counts, float rate, const std::vector<double>& want) {
  each_implementation<RouterBiasArgs>(
      [&](Buffers& b) {
        RouterBiasArgs a;
        a.counts = counts_of(b, counts);
        a.bias = b.values({static_cast<int64_t>(counts.size())},
                          std::vector<double>(counts.size(), 0.5));
        a.rate = rate;
        return a;
      },
      [&](const RouterBiasArgs& a) { expect_near(a.bias, want, 1e-7); });
}

TEST(RouterBias, MovesTowardsTheMean) {
  bias_example({3, 1}, .3f, {.2, .8});
  bias_example({2, 2, 2}, .3f, {.5, .5, .5});
  bias_example({1, 2, 3}, .25f, {.75, .5, .25});
  bias_example({0, 0}, .25f, {.5, .5});
  // Means that floating point would round: 10^15 + 1/3.
  const int64_t big = 1'000'000'000'000'000;
  bias_example({big, big, big + 1}, .25f, {.75, .75, .25});
}

TEST(RouterBias, Values) {
  for (const int64_t n : {1, 5, 67})
    conform<RouterBiasArgs>(std::to_string(n), [&](Buffers& b) {
      std::vector<int64_t> counts;
      for (int64_t e = 0; e < n; ++e) counts.push_back(e * 37 % 11);
      RouterBiasArgs a;
      a.counts = counts_of(b, counts);
      a.bias = b.random({n});
      a.rate = 1e-3f;
      return a;
    });
}

}  // namespace
}  // namespace rondo::testing

#include "kernels/ops/rope.h"

#include <cmath>

#include "each_implementation.h"

namespace rondo::testing {
namespace {

std::vector<double> frequencies(int64_t half) {
  std::vector<double> out;
  for (int64_t i = 0; i < half; ++i)
    out.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
  return out;
}

// Rows (sample, offset, doc, pos) with these positions.
View places_at(Buffers& b, const std::vector<int32_t>& positions) {
  std::vector<int32_t> rows;
  for (const int32_t pos : positions) rows.insert(rows.end(), {0, 0, 0, pos});
  return b.ints({static_cast<int64_t>(positions.size()), 4}, rows);
}

TEST(Rope, Table) {
  for (const int64_t half : {1, 5, 32})
    for (const std::vector<int32_t>& positions :
         {std::vector<int32_t>{}, {0}, {0, 1, 2, 77, 4095}, {1'000'000, 30'000'001, 2147483647}})
      conform<RopeTableArgs>(std::to_string(half), [&](Buffers& b) {
        RopeTableArgs a;
        const int64_t tokens = static_cast<int64_t>(positions.size());
        a.places = places_at(b, positions);
        a.inv_freq = b.f64({half}, frequencies(half));
        a.cos = b.output({tokens, half}, 1);
        a.sin = b.output({tokens, half}, 2);
        a.scale = 1.25f;
        return a;
      });
}

// In fp32 the angle of position 1,000,000 would be off by up to 0.03.
TEST(Rope, TableKeepsTheDigitsOfAMillion) {
  each_implementation<RopeTableArgs>(
      [](Buffers& b) {
        RopeTableArgs a;
        a.places = places_at(b, {1'000'000});
        a.inv_freq = b.f64({1}, {1.0 / 3});
        a.cos = b.output({1, 1});
        a.sin = b.output({1, 1});
        return a;
      },
      [](const RopeTableArgs& a) {
        expect_near(a.cos, {std::cos(1e6 / 3)}, 1e-7);
        expect_near(a.sin, {std::sin(1e6 / 3)}, 1e-7);
      });
}

struct Heads {
  int64_t x, y;
};

RopeArgs rope(Buffers& b, int64_t tokens, Heads heads, int64_t d, bool interleave, bool inverse) {
  RopeArgs a;
  a.x = b.random({tokens, heads.x, d}, -1, 1, 3);
  a.y = b.output({tokens, heads.y, d}, 1);
  a.cos = b.random({tokens, d / 2}, -1, 1, 1);
  a.sin = b.random({tokens, d / 2}, -1, 1);
  a.interleave = interleave;
  a.inverse = inverse;
  return a;
}

TEST(Rope, Turns) {
  for (const int64_t tokens : {0, 1, 37})
    for (const int64_t d : {2, 6, 32, 64, 70})
      for (const bool interleave : {false, true})
        for (const bool inverse : {false, true})
          for (const Heads heads : {Heads{1, 1}, {3, 3}, inverse ? Heads{3, 1} : Heads{1, 3}})
            conform<RopeArgs>(std::to_string(d) + " features", [&](Buffers& b) {
              return rope(b, tokens, heads, d, interleave, inverse);
            });
}

// y may be x, also where one head becomes many: its own first copy must not spoil the rest.
TEST(Rope, TurnsInPlace) {
  for (const bool interleave : {false, true})
    for (const bool shared : {false, true})
      each_implementation<RopeArgs>(
          [&](Buffers& b) {
            RopeArgs a = rope(b, 3, {4, 4}, 8, interleave, false);
            const View heads = b.random({3, 4, 8});
            a.y = heads;
            a.x = heads;
            if (shared) a.x = heads.slice(1, 0, 1);
            return a;
          },
          [&](const RopeArgs& a) {
            Buffers b(a.x.dtype);
            RopeArgs apart = rope(b, 3, {4, 4}, 8, interleave, false);
            apart.x = b.random({3, 4, 8});
            if (shared) apart.x = apart.x.slice(1, 0, 1);
            reference(apart);
            EXPECT_LT(max_norm_error(a.y, apart.y), 1e-6);
          });
}

// A quarter turn of (1, 2): (-2, 1); the pairs are neighbours or halves.
TEST(Rope, PairsAreNeighboursOrHalves) {
  for (const bool interleave : {false, true})
    each_implementation<RopeArgs>(
        [&](Buffers& b) {
          RopeArgs a;
          a.x = b.values({1, 1, 4}, {1, 2, 3, 4});
          a.y = b.output({1, 1, 4});
          a.cos = b.values({1, 2}, {0, 1});
          a.sin = b.values({1, 2}, {1, 0});
          a.interleave = interleave;
          return a;
        },
        [&](const RopeArgs& a) {
          expect_near(
              a.y, interleave ? std::vector<double>{-2, 1, 3, 4} : std::vector<double>{-3, 2, 1, 4},
              1e-6);
        });
}

TEST(Rope, GradientByFiniteDifferences) {
  for (const bool interleave : {false, true})
    for (const Heads heads : {Heads{2, 2}, {1, 3}}) {
      Buffers b(DType::kF64);
      RopeArgs f = rope(b, 3, heads, 6, interleave, false);
      const View dy = b.random({3, heads.y, 6});
      RopeArgs g = f;
      g.x = dy;
      g.y = b.output({3, heads.x, 6});
      g.inverse = true;
      reference(f);
      reference(g);
      expect_gradient("rope",
                      [&] {
                        reference(f);
                        return weighted_sum(f.y, dy);
                      },
                      {{f.x, g.y}});
    }
}

}  // namespace
}  // namespace rondo::testing

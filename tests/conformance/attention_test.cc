#include "kernels/ops/attention.h"

#include <cmath>
#include <limits>

#include "each_implementation.h"

namespace rondo::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Documents of `lengths` (-n: padding), of which the queries and the keys are parts.
struct Shape {
  const char* label;
  std::vector<int> lengths;
  Range q, k;
  int64_t heads, key_heads, dqk, dv;
  int64_t window = 0;
  float dropout = 0;
};
const Shape kShapes[] = {
    {"one token", {1}, {0, 1}, {0, 1}, 1, 1, 1, 1},
    {"no tokens", {}, {0, 0}, {0, 0}, 2, 1, 4, 3},
    {"no keys", {5}, {0, 5}, {0, 0}, 2, 2, 4, 3},
    {"no queries", {5}, {0, 0}, {0, 5}, 2, 2, 4, 3},
    {"whole tiles", {256}, {0, 256}, {0, 256}, 2, 2, 16, 16},
    {"a document and padding", {5, -1, -1, -1}, {0, 8}, {0, 8}, 2, 1, 7, 5},
    {"many documents", {1, 1, 17, 3, -1, 64, 48, 1, 95}, {0, 231}, {0, 231}, 4, 2, 24, 17},
    {"long", {401}, {0, 401}, {0, 401}, 3, 1, 48, 32},
    {"window", {300, 20}, {0, 320}, {0, 320}, 2, 2, 16, 33, 128},
    {"window of one", {70}, {0, 70}, {0, 70}, 1, 1, 5, 3, 1},
    {"dropout", {40, 31, -1}, {0, 72}, {0, 72}, 4, 2, 9, 8, 0, 0.3f},
    {"dropout and window", {150}, {0, 150}, {0, 150}, 2, 1, 9, 8, 20, 0.5f},
    {"earlier keys", {300}, {200, 300}, {0, 200}, 2, 2, 16, 8},
    {"later keys alone", {300}, {0, 100}, {100, 300}, 2, 2, 16, 8},
    {"keys before and after", {300, 30}, {100, 250}, {50, 330}, 2, 2, 16, 8},
    {"DeepSeek's head", {70}, {0, 70}, {0, 70}, 1, 1, 192, 128},
};

void poison_padding(const View& x, const View& places) {
  for (int64_t t = 0; t < places.rows(); ++t)
    if (element(places, 4 * t + 2) < 0)
      for (int64_t i = 0; i < x.shape[1] * x.shape[2]; ++i)
        set_element(x, t * x.shape[1] * x.shape[2] + i, kNan);
}

template <class Args>
void sides(Buffers& b, const Shape& s, Args& a) {
  const View places = b.places(s.lengths);
  a.q_places = places.slice(0, s.q.begin, s.q.end);
  a.k_places = places.slice(0, s.k.begin, s.k.end);
  a.q = b.random({s.q.size(), s.heads, s.dqk}, -1, 1, 3);
  a.k = b.random({s.k.size(), s.key_heads, s.dqk}, -1, 1, 2);
  a.v = b.random({s.k.size(), s.key_heads, s.dv}, -1, 1, 1);
  poison_padding(a.q, a.q_places);
  poison_padding(a.k, a.k_places);
  poison_padding(a.v, a.k_places);
  a.scale = 0.7f;
  a.window = s.window;
  a.dropout = {s.dropout, 7};
}

AttentionBlockArgs block(Buffers& b, const Shape& s, bool first) {
  AttentionBlockArgs a;
  sides(b, s, a);
  a.first = first;
  const auto state = [&](double low, double high) {
    return first ? b.output({s.q.size(), s.heads}) : b.random({s.q.size(), s.heads}, low, high);
  };
  a.m = state(-1, 1);
  a.l = state(1, 2);
  a.a = first ? b.output({s.q.size(), s.heads, s.dv}, 2)
              : b.random({s.q.size(), s.heads, s.dv}, -1, 1, 2);
  if (!first && s.q.size() > 0) {  // a row that saw nothing so far
    set_element(a.m, 0, -kInf);
    set_element(a.l, 0, 0);
    for (int64_t i = 0; i < s.dv; ++i) set_element(a.a, i, 0);
  }
  return a;
}

TEST(Attention, Block) {
  for (const Shape& s : kShapes)
    for (const bool first : {true, false})
      conform<AttentionBlockArgs>(s.label, [&](Buffers& b) { return block(b, s, first); });
}

TEST(Attention, FinishAndDelta) {
  for (const int64_t tokens : {0, 1, 37})
    for (const int64_t dv : {1, 16, 33}) {
      conform<AttentionFinishArgs>("finish", [&](Buffers& b) {
        AttentionFinishArgs a;
        a.m = b.random({tokens, 3});
        a.l = b.random({tokens, 3}, 1, 5);
        a.a = b.random({tokens, 3, dv}, -1, 1, 2);
        a.o = b.output({tokens, 3, dv}, 1);
        a.lse = b.output({tokens, 3});
        if (tokens > 0) {
          set_element(a.m, 0, -kInf);
          set_element(a.l, 0, 0);
          for (int64_t i = 0; i < dv; ++i) set_element(a.a, i, 0);
        }
        return a;
      });
      conform<AttentionDeltaArgs>("delta", [&](Buffers& b) {
        AttentionDeltaArgs a;
        a.o = b.random({tokens, 3, dv}, 0, 1, 2);
        a.d_o = b.random({tokens, 3, dv}, 0, 1, 1);
        a.delta = b.output({tokens, 3});
        return a;
      });
    }
}

AttentionBackwardArgs backward(Buffers& b, const Shape& s, bool accumulate) {
  AttentionBackwardArgs a;
  sides(b, s, a);
  a.lse = b.random({s.q.size(), s.heads}, 1, 3);
  a.delta = b.random({s.q.size(), s.heads});
  a.d_o = b.random({s.q.size(), s.heads, s.dv}, -1, 1, 1);
  poison_padding(a.d_o, a.q_places);
  if (s.q.size() > 2) set_element(a.lse, s.heads * 2, -kInf);
  const auto out = [&](const View& like, int64_t gap) {
    return accumulate ? b.random({like.shape[0], like.shape[1], like.shape[2]}, -1, 1, gap)
                      : b.output({like.shape[0], like.shape[1], like.shape[2]}, gap);
  };
  a.dq = out(a.q, 1);
  a.dk = out(a.k, 2);
  a.dv = out(a.v, 3);
  a.accumulate_dq = a.accumulate_dkv = accumulate;
  return a;
}

TEST(Attention, Backward) {
  for (const Shape& s : kShapes)
    for (const bool accumulate : {false, true})
      conform<AttentionBackwardArgs>(s.label,
                                     [&](Buffers& b) { return backward(b, s, accumulate); });
}

// What a query does not see may hold anything: of later tokens, of other documents, in one tile.
TEST(Attention, NothingLeaksFromWhatIsMasked) {
  const Shape s{"masked NaN", {9, 8}, {0, 5}, {0, 17}, 2, 1, 6, 5};
  const auto poison_keys = [](const View& x, double value) {
    for (int64_t i = 5 * x.shape[1] * x.shape[2]; i < x.elements(); ++i) set_element(x, i, value);
  };
  for (const double value : {kNan, kInf}) {
    const Builder<AttentionBlockArgs> forward = [&](Buffers& b) {
      AttentionBlockArgs a = block(b, s, true);
      poison_keys(a.k, value);
      poison_keys(a.v, value);
      return a;
    };
    conform<AttentionBlockArgs>("masked keys", forward);
    each_implementation<AttentionBlockArgs>(forward, [](const AttentionBlockArgs& a) {
      for (int64_t i = 0; i < a.a.elements(); ++i) EXPECT_TRUE(std::isfinite(element(a.a, i)));
    });
    conform<AttentionBackwardArgs>("masked keys", [&](Buffers& b) {
      AttentionBackwardArgs a = backward(b, s, false);
      poison_keys(a.k, value);
      poison_keys(a.v, value);
      return a;
    });
    conform<AttentionBackwardArgs>("queries of a document without keys", [&](Buffers& b) {
      AttentionBackwardArgs a = backward(b, {"", {9, 8}, {0, 17}, {0, 9}, 2, 1, 6, 5}, false);
      for (const View& x : {a.q, a.d_o})
        for (int64_t i = 9 * x.shape[1] * x.shape[2]; i < x.elements(); ++i)
          set_element(x, i, value);
      return a;
    });
  }
}

// A broken model must not look well.
TEST(Attention, NanOfVisibleKeysIsSeen) {
  for (const int64_t bad : {0, 1}) {
    const Builder<AttentionBlockArgs> forward = [&](Buffers& b) {
      AttentionBlockArgs a = block(b, {"", {2}, {0, 2}, {0, 2}, 1, 1, 1, 1}, true);
      set_element(a.k, bad, kNan);
      return a;
    };
    each_implementation<AttentionBlockArgs>(forward, [&](const AttentionBlockArgs& a) {
      EXPECT_EQ(std::isnan(element(a.l, 0)), bad == 0);
      EXPECT_TRUE(std::isnan(element(a.l, 1)));
    });
  }
}

// q, k, v in one dimension, key i visible to query i and later ones: a, m and l by hand.
struct Example {
  std::vector<int> lengths;
  std::vector<double> q, k, v, o, lse;
  int64_t window = 0;
};

void expect_example(const Example& e) {
  const int64_t n = static_cast<int64_t>(e.q.size());
  const Builder<AttentionBlockArgs> build = [&](Buffers& b) {
    AttentionBlockArgs a;
    a.q = b.values({n, 1, 1}, e.q);
    a.k = b.values({n, 1, 1}, e.k);
    a.v = b.values({n, 1, 1}, e.v);
    a.q_places = a.k_places = b.places(e.lengths);
    a.m = b.output({n, 1});
    a.l = b.output({n, 1});
    a.a = b.output({n, 1, 1});
    a.window = e.window;
    return a;
  };
  each_implementation<AttentionBlockArgs>(build, [&](const AttentionBlockArgs& a) {
    for (const Implementation<AttentionFinishArgs>& finish :
         implementations<AttentionFinishArgs>()) {
      Buffers b(a.a.dtype);
      const AttentionFinishArgs f{a.m, a.l, a.a, b.output({n, 1, 1}), b.output({n, 1})};
      if (finish.refuse && finish.refuse(f)) continue;
      run_once(finish, f, 1);
      for (int64_t i = 0; i < n; ++i) {
        const size_t at = static_cast<size_t>(i);
        EXPECT_NEAR(element(f.o, i), e.o[at], 1e-6 * std::max(1.0, std::abs(e.o[at]))) << i;
        if (e.lse.empty()) continue;
        if (e.lse[at] == -kInf)
          EXPECT_EQ(element(f.lse, i), -kInf) << i;
        else
          EXPECT_NEAR(element(f.lse, i), e.lse[at], 1e-6 * std::max(1.0, std::abs(e.lse[at]))) << i;
      }
    }
  });
}

TEST(Attention, NoFiniteSentinel) {
  // A mask of -1e4 would give 100 for the first output.
  expect_example({{2}, {-20000, 0}, {1, 0}, {1, 100}, {1, 50.5}, {-20000, std::log(2.0)}});
}

TEST(Attention, OneTokenDocumentsReturnV) {
  std::vector<double> v(16), ones(16, 1), zeros(16, 0);
  for (int i = 0; i < 16; ++i) v[static_cast<size_t>(i)] = i - 3.25;
  expect_example({std::vector<int>(16, 1), ones, zeros, v, v, zeros});
}

TEST(Attention, PaddingHasNoOutput) {
  expect_example({{1, -1}, {0, kNan}, {0, kNan}, {3, kNan}, {3, 0}, {0, -kInf}});
}

// Of 130 equal scores the window leaves 128: token 129 sees 2..129, whose mean is 65.5.
TEST(Attention, WindowCountsTheTokenItself) {
  std::vector<double> v(130), ones(130, 1), zeros(130, 0), o(130);
  for (int i = 0; i < 130; ++i) {
    v[static_cast<size_t>(i)] = i;
    o[static_cast<size_t>(i)] = (std::max(0, i - 127) + i) / 2.0;
  }
  expect_example({{130}, ones, zeros, v, o, {}, 128});
}

// The first token counts for the last row, across many tiles.
TEST(Attention, FirstTokenReachesTheLastRow) {
  const int64_t n = 500;
  std::vector<double> v(n, 0), ones(n, 1), zeros(n, 0), o(n);
  v[0] = 500;
  for (int64_t i = 0; i < n; ++i) o[static_cast<size_t>(i)] = 500.0 / static_cast<double>(i + 1);
  expect_example({{n}, ones, zeros, v, o, {}});
}

// The state continues: any blocks of keys, in any order, give the whole.
TEST(Attention, BlocksMakeTheWhole) {
  const Shape s{"", {90, 60}, {0, 150}, {0, 150}, 2, 1, 12, 10, 40};
  for (const Implementation<AttentionBlockArgs>& implementation :
       implementations<AttentionBlockArgs>()) {
    Buffers b(DType::kF32);
    AttentionBlockArgs whole = block(b, s, true), part = whole;
    run_once(implementation, whole, 1);
    part.m = b.output({150, 2});
    part.l = b.output({150, 2});
    part.a = b.output({150, 2, 10});
    for (const Range& r : {Range{100, 150}, Range{0, 37}, Range{37, 100}}) {
      AttentionBlockArgs hop = part;
      hop.k = part.k.slice(0, r.begin, r.end);
      hop.v = part.v.slice(0, r.begin, r.end);
      hop.k_places = part.k_places.slice(0, r.begin, r.end);
      hop.first = r.begin == 100;
      run_once(implementation, hop, 1);
    }
    EXPECT_LT(max_norm_error(part.l, whole.l), 1e-6) << implementation.name;
    EXPECT_LT(max_norm_error(part.a, whole.a), 2e-6) << implementation.name;
    EXPECT_EQ(max_norm_error(part.m, whole.m), 0) << implementation.name;
  }
}

TEST(Attention, GradientByFiniteDifferences) {
  const Shape s{"", {6, 4, -1, 3}, {0, 14}, {0, 14}, 4, 2, 3, 2, 4, 0.25f};
  Buffers b(DType::kF64);
  AttentionBlockArgs f = block(b, s, true);
  for (const View& x : {f.q, f.k, f.v})  // differences step on padding too
    for (int64_t i = 0; i < x.shape[1] * x.shape[2]; ++i)
      set_element(x, 10 * x.shape[1] * x.shape[2] + i, 0.5);
  AttentionFinishArgs finish{f.m, f.l, f.a, b.output({14, 4, 2}), b.output({14, 4})};
  AttentionBackwardArgs g = backward(b, s, false);
  for (int64_t i = 0; i < 4 * 2; ++i) set_element(g.d_o, 10 * 4 * 2 + i, 0.5);
  g.q = f.q, g.k = f.k, g.v = f.v, g.q_places = f.q_places, g.k_places = f.k_places;
  g.lse = finish.lse;
  const auto forward = [&] {
    reference(f);
    reference(finish);
    return weighted_sum(finish.o, g.d_o);
  };
  forward();
  reference(AttentionDeltaArgs{finish.o, g.d_o, g.delta});
  reference(g);
  expect_gradient("attention", forward, {{f.q, g.dq}, {f.k, g.dk}, {f.v, g.dv}});
}

TEST(Attention, DropoutKeepsTheShareItSays) {
  const AttentionDropout dropout{0.25f, 11};
  int kept = 0;
  for (int q = 0; q < 100; ++q)
    for (int k = 0; k < 100; ++k) kept += attention_keep(dropout, 3, {2, q, 0, q}, {2, k, 0, k});
  EXPECT_NEAR(kept / 1e4, 0.75, 0.02);
  // Of the document and the position it knows nothing: only sample and offset count.
  for (int k = 0; k < 100; ++k)
    EXPECT_EQ(attention_keep(dropout, 3, {2, 7, 0, 7}, {2, k, 0, k}),
              attention_keep(dropout, 3, {2, 7, 5, 1}, {2, k, 4, 9}));
}

}  // namespace
}  // namespace rondo::testing

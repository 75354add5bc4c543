#include "parallel/expert_dispatch.h"

#include <algorithm>

#include "kernels/ops/dispatch.h"
#include "parallel/placement.h"

namespace rondo {

int64_t Routing::copies() const {
  return plan_.copies_before(plan_.waves(), rank_);
}

struct ExpertDispatch::State {
  State(Context& ctx, Communicator& ranks, const ExpertShare& share)
      : ctx(ctx), ranks(ranks), share(share) {
    RONDO_CHECK(ranks.size() >= 2 && ranks.size() <= share.experts, "{} experts on {} ranks",
                share.experts, ranks.size());
    for (int r = 0; r <= ranks.size(); ++r)
      host_bounds.push_back(static_cast<int32_t>(
          r < ranks.size() ? part_range(share.experts, ranks.size(), r).begin : share.experts));
    bounds = ctx.allocate(MemoryClass::kWorkspace, DType::kI32,
                          {static_cast<int64_t>(host_bounds.size())});
    copy(*ctx.stream, bounds,
         View(host_bounds.data(), DType::kI32, Memory::kHost,
              {static_cast<int64_t>(host_bounds.size())}));
  }

  int64_t tiles(int64_t tokens) const { return (tokens + kDispatchTile - 1) / kDispatchTile; }

  Context& ctx;
  Communicator& ranks;
  const ExpertShare share;
  std::vector<int32_t> host_bounds;
  Tensor bounds;

  // Of the routing that begin() has asked for.
  int64_t local_tokens = 0;
  std::vector<int64_t> mine, tokens;  // what this rank says first; what all have said
  Tensor counts;
  std::vector<int32_t> host_counts;
  Work asked;
  Event counted;
};

ExpertDispatch::ExpertDispatch(Context& ctx, Communicator& ranks, const ExpertShare& share)
    : state_(std::make_unique<State>(ctx, ranks, share)) {}
ExpertDispatch::~ExpertDispatch() = default;

int64_t ExpertDispatch::first_expert() const {
  return state_->host_bounds[static_cast<size_t>(state_->ranks.rank())];
}
int64_t ExpertDispatch::local_experts() const {
  return state_->host_bounds[static_cast<size_t>(state_->ranks.rank()) + 1] - first_expert();
}

void ExpertDispatch::begin(const View& chosen) {
  State& s = *state_;
  const int64_t n = s.ranks.size();
  s.local_tokens = chosen.rows();
  s.mine = {s.local_tokens};
  s.tokens.assign(static_cast<size_t>(n), 0);
  s.asked = s.ranks.all_gather(*s.ctx.stream, View(s.mine.data(), DType::kI64, Memory::kHost, {1}),
                               View(s.tokens.data(), DType::kI64, Memory::kHost, {n}));
  const int64_t tiles = s.tiles(s.local_tokens);
  s.counts = s.ctx.activation({tiles, n, 2}, DType::kI32);
  if (tiles > 0) launch(s.ctx, DispatchCountArgs{chosen, s.bounds, s.counts, kDispatchTile});
}

std::unique_ptr<Routing> ExpertDispatch::finish() {
  State& s = *state_;
  const int64_t n = s.ranks.size();
  s.asked.wait_host("parallel.dispatch.tokens");
  std::vector<int64_t> each;
  int64_t total = 0;
  for (const int64_t t : s.tokens) {
    each.push_back(s.tiles(t) * n * 2);
    total += each.back();
  }
  s.host_counts.assign(static_cast<size_t>(total), 0);
  s.ranks
      .all_gather(*s.ctx.stream, s.counts.view().reshape({s.counts.view().elements()}),
                  View(s.host_counts.data(), DType::kI32, Memory::kHost, {total}), each)
      .wait_host("parallel.dispatch.counts");
  std::vector<std::vector<DispatchPlan::Count>> counts;
  const int32_t* at = s.host_counts.data();
  for (const int64_t length : each) {
    counts.emplace_back();
    for (int64_t i = 0; i < length; i += 2, at += 2) counts.back().push_back({at[0], at[1]});
  }
  // The limit must be the same everywhere: it follows from the rank with the most tokens.
  const int64_t most = *std::max_element(s.tokens.begin(), s.tokens.end());
  int64_t limit = s.share.wave_tokens;
  if (limit == 0) limit = (5 * most * s.share.k + 7) / 8;
  limit = std::max(limit, kDispatchTile * s.share.k);
  return std::unique_ptr<Routing>(
      new Routing(DispatchPlan(s.tokens, counts, limit, 2), s.ranks.rank(),
                  s.ctx.activation({s.local_tokens, s.share.k}, DType::kI32)));
}

void ExpertDispatch::run(Routing& routing, const View& x, const View& more, const View& chosen,
                         const View& weights, const View& returned, const Compute& compute) {
  State& s = *state_;
  Context& ctx = s.ctx;
  const DispatchPlan& plan = routing.plan();
  const int rank = s.ranks.rank(), n = s.ranks.size(), waves = plan.waves();
  const int64_t h = x.cols(), m = more ? more.cols() : 0, k = s.share.k;
  const int64_t width = h + m + 2 * k, out_width = returned.cols();
  // At full size whatever the routing, so that memory does not follow it.
  const int64_t in = plan.most_copies();
  const int64_t out = plan.most_tokens(rank) * std::min<int64_t>(k, n);
  const auto buffer = [&](int64_t rows, int64_t cols) {
    return ctx.allocate(MemoryClass::kCommunication, DType::kF32,
                        {std::max<int64_t>(rows * cols, 1)});
  };
  // Two of each: one is computed on while the other travels.
  Tensor sending[2], arriving[2], results[2];
  for (int i = 0; i < 2; ++i) {
    sending[i] = buffer(out, width);
    arriving[i] = buffer(in, width);
    results[i] = buffer(in, out_width);
  }
  const Tensor experts = ctx.activation({in, k}, DType::kI32),
               row_weights = ctx.activation({in, k});

  const auto counts = [&](int wave, bool incoming, bool copies, int64_t columns) {
    std::vector<int64_t> elements;
    for (int r = 0; r < n; ++r) {
      const DispatchPlan::Count c =
          incoming ? plan.moves(wave, r, rank) : plan.moves(wave, rank, r);
      elements.push_back((copies ? c.copies : c.rows) * columns);
    }
    return elements;
  };
  const auto rows_in = [](const Tensor& buffer, int64_t rows, int64_t columns) {
    return buffer.view().slice(0, 0, rows * columns).reshape({rows, columns});
  };

  std::vector<Work> there(static_cast<size_t>(waves)), back(static_cast<size_t>(waves));
  const auto send = [&](int w) {
    const DispatchPlan::Range range = plan.tokens(w, rank);
    const auto part = [&](const View& v) {
      return v ? v.slice(0, range.begin, range.end) : View();
    };
    const View rows = rows_in(sending[w % 2], plan.sent(w, rank).rows, width);
    launch(ctx, DispatchPackArgs{.x = part(x),
                                 .more = part(more),
                                 .experts = part(chosen),
                                 .weights = part(weights),
                                 .bounds = s.bounds,
                                 .rows = rows,
                                 .slot_copy = part(routing.slot_copy()),
                                 .first_copy = plan.copies_before(w, rank)});
    const View to = rows_in(arriving[w % 2], plan.received(w, rank).rows, width);
    there[static_cast<size_t>(w)] = s.ranks.all_to_all(
        *ctx.stream, rows, counts(w, false, false, width), to, counts(w, true, false, width));
  };

  if (waves > 0) send(0);
  for (int w = 0; w < waves; ++w) {
    if (w + 1 < waves) send(w + 1);
    there[static_cast<size_t>(w)].wait(*ctx.stream, "parallel.dispatch.arrived");
    if (w >= 2) back[static_cast<size_t>(w - 2)].wait(*ctx.stream, "parallel.dispatch.reuse");
    const DispatchPlan::Count got = plan.received(w, rank);
    const View rows = rows_in(arriving[w % 2], got.rows, width);
    const View copies = rows_in(results[w % 2], got.copies, out_width);
    const View mine = experts.view().slice(0, 0, got.rows);
    const View shares = row_weights.view().slice(0, 0, got.rows);
    launch(ctx, DispatchUnpackArgs{rows, mine, shares});
    compute({w, rows.slice(1, 0, h), m > 0 ? rows.slice(1, h, h + m) : View(), mine, shares,
             got.copies},
            copies);
    const int64_t first = plan.copies_before(w, rank);
    back[static_cast<size_t>(w)] =
        s.ranks.all_to_all(*ctx.stream, copies, counts(w, true, true, out_width),
                           returned.slice(0, first, first + plan.sent(w, rank).copies),
                           counts(w, false, true, out_width));
  }
  for (int w = std::max(0, waves - 2); w < waves; ++w)
    back[static_cast<size_t>(w)].wait(*ctx.stream, "parallel.dispatch.home");
}

}  // namespace rondo

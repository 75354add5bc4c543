#include "model/model.h"

#include <algorithm>

#include "kernels/ops/reduce.h"
#include "kernels/ops/rope.h"
#include "model/network.h"
#include "parallel/placement.h"

namespace rondo {
namespace {

// Host copies of a micro-batch that wait to be copied to the device.
struct Staging {
  std::vector<int32_t> ids, labels;
  std::vector<Place> places;
};

Staging stage(const std::vector<int32_t>& ids, const std::vector<int32_t>& labels,
              const std::vector<Place>& places) {
  return {ids, labels, places};
}

template <class T>
View host_view(std::vector<T>& values, DType dtype, std::initializer_list<int64_t> shape) {
  return View(values.data(), dtype, Memory::kHost, shape);
}

}  // namespace

void BatchCounts::add(const Batch& batch) {
  for (const Place& place : batch.places) tokens += place.doc >= 0 ? 1 : 0;
  labels += count_valid(batch.labels);
  mtp_labels.resize(std::max(mtp_labels.size(), batch.mtp.size()), 0);
  mtp_tokens.resize(mtp_labels.size(), 0);
  for (size_t d = 0; d < batch.mtp.size(); ++d) {
    mtp_labels[d] += count_valid(batch.mtp[d].labels);
    for (const uint8_t valid : batch.mtp[d].valid) mtp_tokens[d] += valid;
  }
}

BatchCounts BatchCounts::of(const std::vector<Batch>& batches) {
  BatchCounts out;
  for (const Batch& batch : batches) out.add(batch);
  return out;
}

namespace {
ExpertRange experts_of(const ModelConfig& config, const RankGroups& groups) {
  return groups.expert ? held_experts(config, groups.expert->size(), groups.expert->rank())
                       : ExpertRange{0, config.n_routed_experts};
}
}  // namespace

struct Model::State {
  State(Context& ctx, const ModelConfig& config, const ModelOptions& options,
        const RankGroups& groups)
      : ctx(ctx),
        config(config),
        options(options),
        groups(groups),
        table(ParameterTable::build(config, experts_of(config, groups))) {
    if (groups.expert && config.n_routed_experts > 0)
      dispatch = std::make_unique<ExpertDispatch>(
          ctx, *groups.expert,
          ExpertShare{config.n_routed_experts, config.num_experts_per_tok, groups.wave_tokens});
    const int64_t flat = table.flat_elements();
    weights = ctx.allocate(MemoryClass::kWeights, DType::kF32, {flat});
    if (options.training) {
      gradients = ctx.allocate(MemoryClass::kGradients, DType::kF32, {flat});
      launch(ctx, FillArgs{gradients, 0});
    }
    sums =
        ctx.allocate(MemoryClass::kWorkspace, DType::kF64, {1 + config.num_nextn_predict_layers});
    router_losses = ctx.allocate(MemoryClass::kWorkspace, DType::kF32, {2});
    launch(ctx, FillArgs{sums, 0});
    launch(ctx, FillArgs{router_losses, 0});
    inverse = rope_inv_freq(config);
    inv_freq =
        ctx.allocate(MemoryClass::kWorkspace, DType::kF64, {static_cast<int64_t>(inverse.size())});
    copy(*ctx.stream, inv_freq,
         host_view(inverse, DType::kF64, {static_cast<int64_t>(inverse.size())}));

    std::vector<View> layer_counts(static_cast<size_t>(config.layers()));
    const Weights named{table, weights, gradients ? gradients.view() : View()};
    int64_t routed = 0;
    for (int64_t i = 0; i < config.layers(); ++i) routed += config.is_moe(i) ? 1 : 0;
    if (routed > 0) {
      counts =
          ctx.allocate(MemoryClass::kWorkspace, DType::kI64, {routed, config.n_routed_experts});
      launch(ctx, FillArgs{counts, 0});
      int64_t row = 0;
      for (int64_t i = 0; i < config.layers(); ++i) {
        if (!config.is_moe(i)) continue;
        const View mine = layer_counts[static_cast<size_t>(i)] = counts.view()[row++];
        View bias;
        if (config.router_bias)
          bias = named("model.layers." + std::to_string(i) + ".mlp.gate.e_score_correction_bias");
        expert_counts.push_back({i, mine, bias});
      }
    }
    network = std::make_unique<Network>(config, named, layer_counts);
  }

  Tensor input(DType dtype, std::initializer_list<int64_t> shape, const View& host) {
    Tensor t = ctx.allocate(MemoryClass::kInputs, dtype, shape);
    copy(*ctx.stream, t, host);
    return t;
  }

  // One micro-batch on the device, with what its layers share.
  struct Loaded {
    std::vector<Tensor> tensors;
    DeviceBatch batch;
    View places, cos, sin;
    int64_t tokens, documents;
    std::shared_ptr<const RingPlan> ring;
  };

  void check(const Batch& batch) const {
    RONDO_CHECK(
        batch.ids.size() == batch.places.size() && batch.ids.size() == batch.labels.size() &&
            (batch.ring || groups.expert || !batch.ids.empty()),
        "{} ids, {} places, {} labels", batch.ids.size(), batch.places.size(), batch.labels.size());
    for (size_t i = 0; i < batch.ids.size(); ++i)
      if (batch.ids[i] < 0 || batch.ids[i] >= config.vocab_size)
        fail_input("token id {} at sample {}, offset {} is outside the vocabulary of {}",
                   batch.ids[i], batch.places[i].sample, batch.places[i].offset, config.vocab_size);
  }

  Loaded load(const Batch& batch, int64_t depths) {
    check(batch);
    copied.wait_host("model.staging");  // of the batch before: its host memory is reused
    staging.clear();
    staging.push_back(stage(batch.ids, batch.labels, batch.places));
    for (int64_t d = 0; d < depths; ++d) {
      const Batch::Mtp& mtp = batch.mtp[static_cast<size_t>(d)];
      staging.push_back(stage(mtp.ids, mtp.labels, batch.places));
      for (size_t i = 0; i < mtp.valid.size(); ++i)
        if (!mtp.valid[i]) staging.back().places[i].doc = -1;
    }
    Loaded out;
    const int64_t t = out.tokens = batch.tokens();
    out.documents = batch.documents;
    if (batch.documents == 0)
      for (const Place& place : batch.places)
        out.documents = std::max<int64_t>(out.documents, place.doc + 1);
    out.ring = batch.ring;
    if (!out.ring)
      out.ring = std::make_shared<const RingPlan>(std::vector<std::vector<Place>>{batch.places}, 0);
    const auto keep = [&](DType dtype, std::initializer_list<int64_t> shape, const View& host) {
      out.tensors.push_back(input(dtype, shape, host));
      return out.tensors.back().view();
    };
    for (size_t i = 0; i < staging.size(); ++i) {
      Staging& s = staging[i];
      const View ids = keep(DType::kI32, {t}, host_view(s.ids, DType::kI32, {t}));
      const View labels = keep(DType::kI32, {t}, host_view(s.labels, DType::kI32, {t}));
      const View places = keep(DType::kI32, {t, 4}, host_view(s.places, DType::kI32, {t, 4}));
      if (i == 0) {
        out.batch.ids = ids;
        out.batch.labels = labels;
        out.places = places;
      } else {
        out.batch.mtp.push_back({ids, labels, places});
      }
    }
    ctx.stream->record(copied);
    const int64_t half = config.rope_dim() / 2;
    for (View* table : {&out.cos, &out.sin}) {
      out.tensors.push_back(ctx.activation({t, half}));
      *table = out.tensors.back();
    }
    launch(ctx, RopeTableArgs{out.places, inv_freq, out.cos, out.sin,
                              static_cast<float>(rope_scale(config))});
    return out;
  }

  Pass pass(const Loaded& loaded, Saved& saved, bool training, double tokens) {
    return {.ctx = ctx,
            .config = config,
            .options = options,
            .saved = saved,
            .step = step,
            .training = training,
            .tokens = loaded.tokens,
            .documents = loaded.documents,
            .places = loaded.places,
            .cos = loaded.cos,
            .sin = loaded.sin,
            .groups = groups,
            .dispatch = dispatch.get(),
            .ring = *loaded.ring,
            .balance_scale = tokens > 0 ? options.balance_loss_weight / tokens : 0,
            .z_scale = tokens > 0 ? options.z_loss_weight / tokens : 0,
            .router_losses = router_losses,
            .probe = probe};
  }

  void run(const Batch& batch) {
    // A model of D depths without MTP inputs in the batch trains its main part alone.
    const int64_t depths = static_cast<int64_t>(
        std::min<size_t>(batch.mtp.size(), static_cast<size_t>(config.num_nextn_predict_layers)));
    const Loaded loaded = load(batch, depths);
    Saved saved(training);
    const Pass main = pass(loaded, saved, training, static_cast<double>(global.tokens));
    std::vector<Network::Depth> more;
    for (int64_t d = 0; d < depths; ++d) {
      const size_t i = static_cast<size_t>(d);
      Network::Depth depth{pass(loaded, saved, training, static_cast<double>(global.mtp_tokens[i])),
                           static_cast<double>(global.mtp_labels[i]),
                           options.mtp_loss_weight / static_cast<double>(depths),
                           sums.view().slice(0, 1 + d, 2 + d)};
      depth.pass.places = loaded.batch.mtp[i].places;
      more.push_back(std::move(depth));
    }
    network->run(main, loaded.batch, static_cast<double>(global.labels), sums.view().slice(0, 0, 1),
                 more);
  }

  Context& ctx;
  const ModelConfig config;
  const ModelOptions options;
  const RankGroups groups;
  const ParameterTable table;
  Tensor weights, gradients, sums, router_losses, counts, inv_freq;
  std::vector<double> inverse;
  std::vector<ExpertCounts> expert_counts;
  std::unique_ptr<ExpertDispatch> dispatch;
  std::unique_ptr<Network> network;
  std::vector<Staging> staging;
  Event copied;
  BatchCounts global;
  int64_t step = 0;
  bool training = false;
  std::function<void(int64_t, const std::string&, const View&)> probe;
};

Model::Model(Context& ctx, const ModelConfig& config, const ModelOptions& options,
             const RankGroups& groups)
    : state_(std::make_unique<State>(ctx, config, options, groups)) {}

Model::~Model() = default;

const ModelConfig& Model::config() const {
  return state_->config;
}
const ParameterTable& Model::table() const {
  return state_->table;
}
const RankGroups& Model::groups() const {
  return state_->groups;
}
View Model::weights() const {
  return state_->weights;
}
View Model::gradients() const {
  return state_->gradients;
}
const std::vector<Model::ExpertCounts>& Model::expert_counts() const {
  return state_->expert_counts;
}

void Model::set_weights(const std::vector<float>& flat) {
  std::vector<float> values = flat;
  copy(*state_->ctx.stream, state_->weights,
       host_view(values, DType::kF32, {static_cast<int64_t>(values.size())}));
  state_->ctx.stream->synchronize("model.set_weights");
}

namespace {
std::vector<float> to_host(Context& ctx, const View& view, const char* site) {
  std::vector<float> values(static_cast<size_t>(view.elements()));
  copy(*ctx.stream, host_view(values, DType::kF32, {view.elements()}), view);
  ctx.stream->synchronize(site);
  return values;
}
}  // namespace

std::vector<float> Model::get_weights() const {
  return to_host(state_->ctx, state_->weights, "model.get_weights");
}
std::vector<float> Model::get_gradients() const {
  return to_host(state_->ctx, state_->gradients, "model.get_gradients");
}

void Model::begin_step(const BatchCounts& counts, int64_t step, Mode mode) {
  State& s = *state_;
  RONDO_CHECK(mode == Mode::kEvaluate || s.options.training, "a model without gradients");
  s.training = mode == Mode::kTrain;
  s.global = counts;
  const size_t depths = static_cast<size_t>(s.config.num_nextn_predict_layers);
  s.global.mtp_labels.resize(depths, 0);
  s.global.mtp_tokens.resize(depths, 0);
  s.step = step;
  if (s.training) launch(s.ctx, FillArgs{s.gradients, 0});
  launch(s.ctx, FillArgs{s.sums, 0});
  launch(s.ctx, FillArgs{s.router_losses, 0});
  if (s.counts) launch(s.ctx, FillArgs{s.counts, 0});
}

void Model::run(const Batch& batch) {
  state_->run(batch);
}

void Model::reduce() {
  State& s = *state_;
  if (!s.groups.world) return;
  std::vector<Work> all;
  const auto sum = [&](const View& view) {
    all.push_back(s.groups.world->all_reduce(*s.ctx.stream, view, Reduction::kSum));
  };
  if (s.training) {
    const int64_t experts = s.table.expert_begin(), end = s.table.flat_elements();
    sum(s.gradients.view().slice(0, 0, std::min(experts, end)));
    Communicator* replicas = s.groups.expert ? s.groups.expert_data : s.groups.world;
    if (replicas && experts < end)
      all.push_back(replicas->all_reduce(*s.ctx.stream, s.gradients.view().slice(0, experts, end),
                                         Reduction::kSum));
  }
  sum(s.sums);
  sum(s.router_losses);
  if (s.counts) sum(s.counts);
  for (const Work& work : all) work.wait(*s.ctx.stream, "model.reduce");
}

Losses Model::losses() {
  State& s = *state_;
  std::vector<double> sums(static_cast<size_t>(1 + s.config.num_nextn_predict_layers));
  std::vector<float> router(2);
  copy(*s.ctx.stream, host_view(sums, DType::kF64, {static_cast<int64_t>(sums.size())}), s.sums);
  copy(*s.ctx.stream, host_view(router, DType::kF32, {2}), s.router_losses);
  s.ctx.stream->synchronize("model.losses");
  Losses out;
  out.loss = out.total = sums[0];
  out.mtp.assign(sums.begin() + 1, sums.end());
  for (const double mtp : out.mtp)
    out.total += s.options.mtp_loss_weight / static_cast<double>(out.mtp.size()) * mtp;
  out.balance = router[0];
  out.z = router[1];
  out.total += out.balance + out.z;
  return out;
}

std::vector<float> Model::logits(const Batch& batch, int64_t first, int64_t count) {
  State& s = *state_;
  const State::Loaded loaded = s.load(batch, 0);
  Saved saved(false);
  const Pass pass = s.pass(loaded, saved, false, 0);
  const Tensor x = s.network->trunk(pass, loaded.batch.ids);
  const Tensor normed = s.network->final_norm(pass, x);
  const Tensor out = pass.activation({count, s.config.vocab_size});
  s.network->logits(pass, normed.view().slice(0, first, first + count), out);
  return to_host(s.ctx, out, "model.logits");
}

std::vector<float> Model::mtp_logits(const Batch& batch, int depth) {
  State& s = *state_;
  const State::Loaded loaded = s.load(batch, depth);
  Saved saved(false);
  Pass pass = s.pass(loaded, saved, false, 0);
  const Tensor trunk = s.network->trunk(pass, loaded.batch.ids);
  Tensor x = s.network->final_norm(pass, trunk);
  for (int d = 1; d <= depth; ++d) {
    const DeviceBatch::Mtp& mtp = loaded.batch.mtp[static_cast<size_t>(d - 1)];
    pass.places = mtp.places;
    x = s.network->mtp_head(d).normed(pass, s.network->mtp_forward(pass, d, mtp.ids, x));
  }
  const Tensor out = pass.activation({loaded.tokens, s.config.vocab_size});
  s.network->mtp_head(depth).logits(pass, x, out);
  return to_host(s.ctx, out, "model.logits");
}

std::string Model::first_nonfinite(const Batch& batch) {
  State& s = *state_;
  const Tensor found = s.ctx.allocate(MemoryClass::kWorkspace, DType::kF64, {1});
  const auto bad = [&](const View& view) {
    std::vector<double> count(1);
    launch(s.ctx, FillArgs{found, 0});
    launch(s.ctx, ReduceArgs{view, found, ReduceArgs::Kind::kNonfinite});
    copy(*s.ctx.stream, host_view(count, DType::kF64, {1}), found);
    s.ctx.stream->synchronize("model.first_nonfinite");
    return count[0] > 0;
  };
  std::string first;
  int64_t weights_seen = -2;  // the last layer whose weights were looked at
  const auto place = [&](int64_t layer) {
    return layer < 0                   ? std::string("embedding")
           : layer < s.config.layers() ? "layer " + std::to_string(layer)
                                       : std::string("output head");
  };
  const auto weights_of = [&](int64_t layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const Parameter& row : s.table.rows()) {
      const bool mine = layer < 0 ? row.name == "model.embed_tokens.weight"
                        : layer < s.config.layers()
                            ? row.name.starts_with(prefix)
                            : row.name == "model.norm.weight" || row.name == "lm_head.weight";
      if (mine && first.empty() && bad(s.table.view(s.weights, row)))
        first = place(layer) + ", " + row.name;
    }
  };
  s.probe = [&](int64_t layer, const std::string& what, const View& view) {
    if (!first.empty()) return;
    if (layer != weights_seen) weights_of(weights_seen = layer);
    if (first.empty() && bad(view)) first = place(layer) + ", " + what;
  };
  const bool training = s.training;
  s.training = false;
  s.run(batch);
  s.training = training;
  s.probe = nullptr;
  return first;
}

}  // namespace rondo

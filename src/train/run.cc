#include "train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "kernels/peak.h"
#include "model/flops.h"
#include "model/hub.h"
#include "parallel/dispatch_plan.h"
#include "train/checkpoint/checkpoint.h"
#include "train/evaluate.h"
#include "train/guard/guard.h"
#include "train/metrics/progress.h"
#include "train/ranks.h"
#include "train/step.h"
#include "train/whole_model.h"

namespace rondo {
namespace {

int threads_of(int64_t threads) {
  return threads > 0 ? static_cast<int>(threads) : available_threads();
}

// Documents' lengths in a batch: what attention costs.
std::vector<int64_t> document_lengths(const Batch& batch) {
  std::vector<int64_t> lengths;
  int32_t doc = -1;
  for (const Place& place : batch.places) {
    if (place.doc < 0) continue;
    if (place.doc != doc) lengths.push_back(0);
    doc = place.doc;
    ++lengths.back();
  }
  return lengths;
}

// What a rank computes and talks with. Outlives everything that a failure takes down.
struct Machine {
  Machine(const RunConfig& config, const TrainOptions& options, Log& log, RankOptions rank)
      : ranks_here(rank.ranks_here),
        threads(threads_of(config.threads)),
        device(make_device(config.device, {.threads = std::max(1, threads / ranks_here),
                                           .drop_wait = config.emu_drop_wait,
                                           .delay_us = config.emu_delay_us})) {
    if (rank.channel) world = make_communicator(*device, std::move(rank.channel));
    device->set_trace(options.trace);
    ctx = std::make_unique<Context>(*device, log, world ? world->rank() : 0,
                                    world ? world->size() : 1);
  }
  const int ranks_here;  // ranks that share this machine's processors
  const int threads;     // of all of them together
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> world;
  std::unique_ptr<Context> ctx;
};

class Run {
 public:
  Run(const RunConfig& config, const TrainOptions& options, Log& log, Machine& machine)
      : config_(config),
        options_(options),
        log_(log),
        machine_(machine),
        device_(machine.device.get()),
        ctx_(machine.ctx.get()),
        mesh_(config.mesh, ctx_->world),
        ranks_(*ctx_->stream, machine.world.get(), mesh_, config.placement, config.wave_tokens),
        model_config_(read_config()) {
    ranks_.expect_same("configuration", to_toml(config));
    ranks_.expect_same("build of rondo", read_file("/proc/self/exe"));
    derive_batch();
    check_experts();
    if (ranks_.first()) check_folder();
    ranks_.barrier();
    data_ = std::make_unique<TrainingData>(open_training_data(
        config.data, model_config_.vocab_size, [&](const std::string& line) { warn(line); }));
    identity_ = {hex64(data_->train.fingerprint()), model_config_.vocab_size, config.batch_size,
                 config.data.sequence_length};
    ModelOptions model_options{.mtp_loss_weight = config.mtp_loss_weight,
                               .balance_loss_weight = config.balance_loss_weight,
                               .z_loss_weight = config.z_loss_weight,
                               .dropout = config.dropout,
                               .attention_dropout = config.attention_dropout >= 0
                                                        ? config.attention_dropout
                                                        : model_config_.attention_dropout,
                               .seed = config.seed};
    model_ = std::make_unique<Model>(*ctx_, model_config_, model_options, ranks_.groups());
    whole_ = std::make_unique<WholeModel>(model_config_, model_->table(), ranks_);
    optimizer_ = std::make_unique<Optimizer>(*ctx_, *model_,
                                             AdamWOptions{config.beta1, config.beta2, config.eps,
                                                          config.weight_decay, config.clip_norm});
  }

  void go() {
    if (!ranks_.first()) {
      start();
      ranks_.barrier();
      run_steps(nullptr, nullptr);
      return;
    }
    fs::create_directories(options_.out);
    const FileLock lock(options_.out + "/lock");
    start();
    ranks_.barrier();  // what others still read is not touched before
    remove_unfinished(options_.out);
    write_file_atomic(options_.out + "/config.toml", to_toml(config_));
    MetricsFile metrics(options_.out + "/metrics.jsonl", state_.step);
    const int64_t steps = config_.schedule.steps, first = state_.step + 1;
    log_.info("{}: {} parameters, steps {} to {}, {} tokens a step, device {}, {} threads{}",
              options_.out, whole_->table().parameters(), first, steps,
              config_.batch_size * config_.data.sequence_length, device_->name(),
              device_->threads() * ranks_.size(), ranks_.size() > 1 ? ", " + mesh_.describe() : "");
    Progress progress(options_.terminal, config_.log_interval, first);
    log_.set_hooks([&] { progress.clear(); }, [&] { progress.redraw(); });
    try {
      run_steps(&metrics, &progress);
    } catch (...) {
      log_.set_hooks(nullptr, nullptr);
      throw;
    }
    log_.set_hooks(nullptr, nullptr);
    if (options_.wait_sites) *options_.wait_sites = device_->wait_sites();
    log_.info("the model is in {}", latest_checkpoint(options_.out));
  }

 private:
  void warn(const std::string& line) {
    if (ranks_.first()) log_.warn("{}", line);
  }

  // Of the first rank alone: the others have neither metrics nor progress.
  void run_steps(MetricsFile* metrics, Progress* progress) {
    measure_peak_rate();
    for (int64_t step = state_.step + 1; step <= config_.schedule.steps; ++step) {
      StepMetrics m = one_step(step);
      const bool last = step == config_.schedule.steps;
      if (data_->validation && config_.eval_interval > 0 &&
          (step % config_.eval_interval == 0 || last))
        validate(m, progress);
      if (metrics) metrics->write(m);
      if (progress) progress->show(m);
      if (last || (config_.checkpoint_interval > 0 && step % config_.checkpoint_interval == 0))
        save();
    }
    ranks_.barrier();
  }

  void derive_batch() {
    const int64_t data = mesh_.size(Axis::kData);
    if (config_.micro_batch_size == 0)
      config_.micro_batch_size = std::max<int64_t>(config_.batch_size / data, 1);
    if (config_.batch_size % (config_.micro_batch_size * data) == 0) return;
    fail_input(
        "train.batch_size is {}; it must be a multiple of train.micro_batch_size {} x "
        "parallel.data {}",
        config_.batch_size, config_.micro_batch_size, data);
  }

  void check_experts() const {
    const int64_t ranks = mesh_.size(Axis::kExpert), experts = model_config_.n_routed_experts;
    if (ranks == 1) return;
    if (ranks > experts)
      fail_input(
          "parallel.expert is {}, but the model has {} routed experts; at most that many fit",
          ranks, experts);
    const int64_t least = kDispatchTile * model_config_.num_experts_per_tok;
    if (config_.wave_tokens > 0 && config_.wave_tokens < least)
      fail_input(
          "moe.wave_tokens is {}; with num_experts_per_tok {} it must be at least {} ({} tokens "
          "travel together), or 0 to have it derived",
          config_.wave_tokens, model_config_.num_experts_per_tok, least, kDispatchTile);
  }

  ModelConfig read_config() {
    std::vector<std::string> warnings;
    const std::string folder = config_.folder.empty() ? config_.init_from : config_.folder;
    ModelConfig model = load_model_config(folder, warnings);
    for (const std::string& line : warnings) warn(line);
    if (config_.data.sequence_length > model.max_position_embeddings)
      fail_input(
          "data.sequence_length is {}; {} has max_position_embeddings {}: use shorter sequences, "
          "or YaRN with a larger one",
          config_.data.sequence_length, folder, model.max_position_embeddings);
    return model;
  }

  void check_folder() const {
    const bool there = fs::exists(options_.out + "/config.toml");
    if (there && !options_.resume)
      fail_input("{}: already holds a run; give another --out, or --resume to go on with it",
                 options_.out);
    if (options_.resume && !there)
      fail_input("{}: holds no run to resume; leave out --resume to begin one", options_.out);
  }

  // Weights, moments and position: of the latest checkpoint, of init_from, or fresh.
  void start() {
    const std::string latest = options_.resume ? latest_checkpoint(options_.out) : "";
    if (!latest.empty()) {
      const Snapshot s = read_checkpoint(latest, whole_->table(), model_config_);
      check_identity(identity_, s.state.identity, latest);
      state_ = s.state;
      model_->set_weights(whole_->held(s.weights));
      put(optimizer_->first_moment(), whole_->held(s.m));
      put(optimizer_->second_moment(), whole_->held(s.v));
      if (ranks_.first()) log_.info("resuming from {}", latest);
      return;
    }
    state_.identity = identity_;
    if (config_.init_from.empty()) {
      model_->set_weights(initial_values(model_->table(), model_config_, config_.seed));
      return;
    }
    const std::vector<float> fresh = initial_values(whole_->table(), model_config_, config_.seed);
    model_->set_weights(whole_->held(load_weights(whole_->table(), model_config_, config_.init_from,
                                                  config_.init_missing_mtp ? &fresh : nullptr)));
  }

  void put(const View& device, std::vector<float> values) {
    copy(*ctx_->stream, device,
         View(values.data(), DType::kF32, Memory::kHost, {static_cast<int64_t>(values.size())}));
    ctx_->stream->synchronize("train.restore");
  }

  // Ranks of a machine share its processors: one of them measures while the others rest.
  void measure_peak_rate() {
    peak_gflops_ = config_.peak_gflops;
    if (peak_gflops_ > 0) return;
    double mine = 0;
    if (ctx_->rank % machine_.ranks_here == 0) {
      ThreadPool pool(machine_.threads);
      mine = measure_peak(pool).gflops;
    }
    peak_gflops_ = ranks_.sum_over_all(mine);
  }

  StepMetrics one_step(int64_t step) {
    const auto begin = std::chrono::steady_clock::now();
    const int64_t depths = config_.mtp_loss_weight > 0 ? model_config_.num_nextn_predict_layers : 0;
    const int64_t mine = config_.batch_size / ranks_.data_size();
    std::vector<Batch> batches;
    BatchCounts counts;
    std::vector<double> done = {0, 0};  // tokens, FLOPs
    for (int64_t i = 0; i < mine; i += config_.micro_batch_size) {
      Batch whole = data_->train.make_batch(state_.samples + ranks_.data_rank() * mine + i,
                                            config_.micro_batch_size, static_cast<int>(depths));
      counts.add(whole);
      const std::vector<int64_t> lengths = document_lengths(whole);
      double n = 0;
      for (const int64_t length : lengths) n += static_cast<double>(length);
      done[0] += n;
      done[1] += training_flops(model_config_, n,
                                visible_pairs(lengths, model_config_.sliding_window), depths > 0);
      batches.push_back(ranks_.part(std::move(whole), model_config_.sliding_window));
    }
    ranks_.sum_over_data(done);
    const double tokens = done[0], flops = done[1];
    StepMetrics m =
        run_step(*ctx_, *model_, *optimizer_, plain_schedule(static_cast<int64_t>(batches.size())),
                 {step, learning_rate(config_.schedule, step), config_.router_bias_update_rate,
                  batches, ranks_.sum_over_data(counts)});
    m.steps = config_.schedule.steps;
    m.step_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    m.tokens_per_second = tokens / m.step_seconds;
    m.mfu = flops / m.step_seconds / (peak_gflops_ * 1e9);
    if (config_.peak_gflops > 0 && m.mfu > 1)
      throw RunFailure(
          fmt::format("step {}: {:.1f} GFLOP/s is above precision.peak_gflops = {}, which "
                      "is therefore wrong",
                      step, flops / m.step_seconds / 1e9, peak_gflops_));
    state_.step = step;
    state_.samples += config_.batch_size;
    state_.tokens_seen += static_cast<int64_t>(tokens);
    m.tokens_seen = state_.tokens_seen;
    return m;
  }

  void validate(StepMetrics& m, Progress* progress) {
    const EvaluationResult r = evaluate(*model_, *data_->validation, config_.micro_batch_size,
                                        config_.eval_sequences, nullptr, &ranks_);
    m.validation_loss = r.loss;
    m.validation_bits_per_byte = r.bits_per_byte;
    if (!progress) return;
    progress->note(
        fmt::format("step {}: validation loss {:.4f} nats a token", m.step, r.loss) +
        (r.bits_per_byte ? fmt::format(", {:.3f} bits per byte", *r.bits_per_byte) : ""));
  }

  void save() {
    Stream& stream = *ctx_->stream;
    const Snapshot snapshot{state_, whole_->gather(stream, model_->weights()),
                            whole_->gather(stream, optimizer_->first_moment()),
                            whole_->gather(stream, optimizer_->second_moment())};
    if (ranks_.first())
      write_checkpoint(options_.out, snapshot, whole_->table(), model_config_,
                       config_.checkpoint_dtype, data_->tokenizer.get(), config_.checkpoint_keep);
  }

  RunConfig config_;  // micro_batch_size as derived
  const TrainOptions options_;
  Log& log_;
  const Machine& machine_;
  Device* const device_;
  Context* const ctx_;
  const Mesh mesh_;
  const Ranks ranks_;
  const ModelConfig model_config_;
  std::unique_ptr<TrainingData> data_;
  RunIdentity identity_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<WholeModel> whole_;
  std::unique_ptr<Optimizer> optimizer_;
  TrainState state_;
  double peak_gflops_ = 0;
};

}  // namespace

void train(const RunConfig& config, const TrainOptions& options, Log& log, RankOptions rank) {
  Machine machine(config, options, log, std::move(rank));
  const auto run = [&] { Run(config, options, log, machine).go(); };
  if (machine.world)
    failing_together(*machine.world, run);
  else
    run();
}

LoadedModel load_model(const std::string& folder, const std::string& device, int64_t threads,
                       Log& log) {
  LoadedModel out;
  out.folder = folder;
  if (!fs::exists(folder)) fail_input("{}: is not there", folder);
  if (fs::exists(folder + "/config.toml")) {  // a run: its latest checkpoint
    out.folder = latest_checkpoint(folder);
    if (out.folder.empty()) fail_input("{}: this run has no checkpoint yet", folder);
    out.data = load_run_config(folder + "/config.toml", {}).data;
  }
  std::vector<std::string> warnings;
  const ModelConfig config = load_model_config(out.folder, warnings);
  if (fs::exists(out.folder + "/rondo/state.json"))
    out.tokenizer = checkpoint_tokenizer(out.folder);
  out.device = make_device(device, {.threads = threads_of(threads)});
  out.ctx = std::make_unique<Context>(*out.device, log);
  out.model = std::make_unique<Model>(*out.ctx, config, ModelOptions{.training = false});
  const std::vector<float> fresh(static_cast<size_t>(out.model->table().flat_elements()), 0);
  out.model->set_weights(load_weights(out.model->table(), config, out.folder, &fresh));
  return out;
}

}  // namespace rondo

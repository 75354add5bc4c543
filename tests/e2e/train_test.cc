// Whole runs: what a user may rely on.
#include <cmath>
#include <cstring>
#include <fstream>

#include "model/hub.h"
#include "train/checkpoint/checkpoint.h"
#include "train/evaluate.h"
#include "train/guard/guard.h"
#include "train/step.h"
#include "train_fixture.h"

namespace rondo::testing {
namespace {

TEST_F(TrainTest, LearnsAndEvaluates) {
  run("a", {"train.steps=30", "train.eval_interval=15"});
  const auto loss = metric("a", "loss"), held_out = metric("a", "validation_loss");
  ASSERT_EQ(loss.size(), 30u);
  EXPECT_NEAR(loss.front(), std::log(257.0), 0.1);
  EXPECT_LT(loss.back(), 3.2);
  ASSERT_EQ(held_out.size(), 2u);
  EXPECT_LT(held_out[1], held_out[0]);
  EXPECT_EQ(metric("a", "step").back(), 30);
  EXPECT_EQ(metric("a", "tokens_per_second").size(), 30u);
  EXPECT_EQ(metric("a", "grad_norm").size(), 30u);
}

// The cross-entropy of the exported logits is the loss of the same sequences.
TEST_F(TrainTest, ExportedLogitsAreThoseOfTheLoss) {
  run("a");
  const std::string file = out("a") + "/logits.safetensors";
  const std::string data = (folder_ / "text-valid").string();
  const std::string command = std::string(RONDO_PROGRAM) + " eval " + out("a") + " --data " + data +
                              " --batch 4 --logits " + file + " > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const SafetensorsFile read(file);
  const auto& ids = read.tensors().at("input_ids");
  const auto& logits = read.tensors().at("logits");
  const int64_t length = ids.shape.at(1), vocab = logits.shape.at(2);
  ASSERT_EQ(ids.shape, (std::vector<int64_t>{4, length}));
  ASSERT_EQ(logits.shape, (std::vector<int64_t>{4, length, vocab}));
  std::vector<int32_t> id(static_cast<size_t>(4 * length));
  std::vector<float> row(static_cast<size_t>(vocab));
  std::memcpy(id.data(), ids.data, id.size() * 4);
  double nats = 0;
  for (int64_t t = 0; t < 3 * length; ++t) {  // the label of the last row's last token is not there
    std::memcpy(row.data(), logits.data + t * vocab * 4, row.size() * 4);
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x));
    nats += std::log(sum) - row[static_cast<size_t>(id[static_cast<size_t>(t + 1)])];
  }
  Log log(0, LogLevel::kWarning);
  LoadedModel loaded = load_model(out("a"), "cpu", 1, log);
  const Evaluation held_out = open_evaluation(loaded.data, data, vocab, [](const std::string&) {});
  EXPECT_NEAR(nats / static_cast<double>(3 * length), evaluate(*loaded.model, held_out, 4, 3).loss,
              1e-5);
}

TEST_F(TrainTest, SameSeedSameBitsAtAnyThreadCountAndOnTheEmulatedDevice) {
  run("one", {"device.threads=1", "train.dropout=0.1"});
  run("three", {"device.threads=3", "train.dropout=0.1"});
  run("emu", {"device.device=emu:64MiB", "train.dropout=0.1"});
  run("other", {"train.seed=2", "train.dropout=0.1"});
  EXPECT_EQ(weights("one"), weights("three"));
  EXPECT_EQ(weights("one"), weights("emu"));
  EXPECT_NE(weights("one"), weights("other"));
  EXPECT_EQ(metric("one", "loss"), metric("emu", "loss"));
}

TEST_F(TrainTest, ResumingGivesTheRunThatWasNotInterrupted) {
  const std::vector<std::string> set = {"checkpoint.interval=3", "checkpoint.keep=5",
                                        "checkpoint.dtype=bf16", "train.dropout=0.1"};
  run("whole", set);
  fs::copy(out("whole"), out("cut"), fs::copy_options::recursive);
  fs::remove_all(out("cut") + "/step-6");
  fs::create_directories(out("cut") + "/step-5.tmp/rondo");  // what a killed run leaves
  run("cut", set, true);
  for (const char* file : {"model.safetensors", "rondo/optimizer.safetensors",
                           "rondo/masters.safetensors", "rondo/state.json"})
    EXPECT_EQ(read_file(out("whole") + "/step-6/" + file),
              read_file(out("cut") + "/step-6/" + file))
        << file;
  EXPECT_EQ(metric("whole", "loss"), metric("cut", "loss"));
  EXPECT_FALSE(fs::exists(out("cut") + "/step-5.tmp"));
}

TEST_F(TrainTest, MicroBatchesChangeNothingButRounding) {
  run("four", {"train.micro_batch_size=2", "train.steps=3"});
  run("one", {"train.micro_batch_size=8", "train.steps=3"});
  const auto a = metric("four", "total_loss"), b = metric("one", "total_loss");
  const auto na = metric("four", "grad_norm"), nb = metric("one", "grad_norm");
  ASSERT_EQ(a.size(), 3u);
  EXPECT_NEAR(a[0], b[0], 1e-6 * b[0]);
  EXPECT_NEAR(na[0], nb[0], 1e-5 * nb[0]);
  EXPECT_NEAR(a[1], b[1], 1e-4 * b[1]);
  EXPECT_NEAR(a[2], b[2], 1e-3 * b[2]);
}

// The run folder of four ranks is that of one, to rounding; its bits are its own every time, and
// resuming on the same layout does not show.
TEST_F(TrainTest, ManyRanksAreOne) {
  const std::vector<std::string> set = {
      "train.micro_batch_size=2", "train.steps=4",
      "train.eval_interval=2",    "train.dropout=0.1",
      "parallel.context=2",       "checkpoint.interval=2",
      "checkpoint.keep=5",        "train.balance_loss_weight=0.01"};
  std::vector<std::string> alone = set;
  alone.erase(std::find(alone.begin(), alone.end(), "parallel.context=2"));
  run("one", alone);
  run_on(4, "four", set);
  run_on(4, "again", set);
  for (const char* key :
       {"total_loss", "grad_norm", "validation_loss", "tokens_seen", "max_over_mean_expert_load"}) {
    const auto a = metric("four", key), b = metric("one", key);
    ASSERT_EQ(a.size(), b.size()) << key;
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-3 * b[i]) << key << i;
    EXPECT_NEAR(a[0], b[0], 1e-5 * b[0]) << key;
  }
  EXPECT_EQ(weights("four", 4), weights("again", 4));
  fs::remove_all(out("again") + "/step-4");
  run_on(4, "again", set, true);
  EXPECT_EQ(weights("four", 4), weights("again", 4));
  EXPECT_EQ(metric("four", "loss"), metric("again", "loss"));
}

TEST_F(TrainTest, ExpertsOnManyRanksAreThoseOfOne) {
  const std::vector<std::string> set = {
      "train.micro_batch_size=2", "train.steps=4",
      "train.eval_interval=2",
      "train.eval_sequences=9",  // the last round lacks data
      "train.dropout=0.1",        "train.balance_loss_weight=0.01",
      "checkpoint.interval=2",    "checkpoint.keep=5"};
  run("one", set);
  const auto near_one = [&](const std::string& name, double tolerance) {
    for (const char* key : {"total_loss", "grad_norm", "validation_loss", "tokens_seen",
                            "max_over_mean_expert_load"}) {
      const auto a = metric(name, key), b = metric("one", key);
      ASSERT_EQ(a.size(), b.size()) << name << key;
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_NEAR(a[i], b[i], tolerance * b[i]) << name << key << i;
    }
  };
  const std::string least = "moe.wave_tokens=" + std::to_string(64 * 2);  // configs/tiny: k 2
  const std::vector<std::vector<std::string>> layouts = {
      {"parallel.context=2", "parallel.expert=2"},
      {"parallel.context=1", "parallel.expert=4", least},
      {"parallel.context=4", "parallel.expert=4"},
  };
  for (size_t i = 0; i < layouts.size(); ++i) {
    std::vector<std::string> all = set;
    all.insert(all.end(), layouts[i].begin(), layouts[i].end());
    const std::string name = "layout" + std::to_string(i);
    run_on(4, name, all);
    near_one(name, 1e-3);
    // The same layout goes on with the same bits.
    const std::string whole = weights(name, 4);
    const auto loss = metric(name, "loss");
    fs::remove_all(out(name) + "/step-4");
    run_on(4, name, all, true);
    EXPECT_EQ(weights(name, 4), whole) << name;
    EXPECT_EQ(metric(name, "loss"), loss) << name;
  }
  // Another layout goes on from the same checkpoint.
  fs::remove_all(out("layout0") + "/step-4");
  run("layout0", set, true);
  near_one("layout0", 1e-3);
}

TEST_F(TrainTest, AMicroBatchIsTheRanksShareWhereLeftOut) {
  run("one", {"train.micro_batch_size=0"});
  run_on(2, "two", {"train.micro_batch_size=0"});
  for (const auto& [name, size] : {std::pair("one", 8), std::pair("two", 4)})
    EXPECT_EQ(load_run_config(out(name) + "/config.toml", {}).micro_batch_size, size) << name;
}

TEST_F(TrainTest, RanksThatDoNotFitAreRefusedOnce) {
  const auto message = [&](int ranks, const std::vector<std::string>& set) -> std::string {
    try {
      run_on(ranks, "bad", set);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no InputError";
  };
  EXPECT_EQ(message(4, {"parallel.context=3"}),
            "parallel: context 3 x tensor 1 = 3 does not divide the 4 ranks; their product must be "
            "one of 1, 2, 4");
  EXPECT_EQ(message(3, {"train.micro_batch_size=4"}),
            "train.batch_size is 8; it must be a multiple of train.micro_batch_size 4 x "
            "parallel.data 3");
  EXPECT_EQ(message(3, {"train.micro_batch_size=0"}),
            "train.batch_size is 8; it must be a multiple of train.micro_batch_size 2 x "
            "parallel.data 3");
  EXPECT_EQ(message(4, {"train.micro_batch_size=1", "parallel.expert=3"}),
            "parallel: expert 3 does not divide the 4 ranks; it may be one of 1, 2, 4");
  EXPECT_EQ(message(16, {"train.batch_size=16", "train.micro_batch_size=1", "parallel.expert=16"}),
            "parallel.expert is 16, but the model has 8 routed experts; at most that many fit");
  EXPECT_EQ(message(2, {"train.micro_batch_size=1", "parallel.expert=2", "moe.wave_tokens=127"}),
            "moe.wave_tokens is 127; with num_experts_per_tok 2 it must be at least 128 (64 tokens "
            "travel together), or 0 to have it derived");
  EXPECT_FALSE(fs::exists(out("bad") + "/config.toml"));
}

TEST_F(TrainTest, RanksWithOtherConfigurationsAreRefused) {
  try {
    run_ranks(2, [&](std::unique_ptr<Channel> channel) {
      Log log(0, LogLevel::kWarning);
      const std::string lr = channel->rank() == 1 ? "train.learning_rate=1e-3" : "train.seed=1";
      train(config({lr, "train.micro_batch_size=1"}), {.out = out("bad")}, log,
            {std::move(channel), 2});
    });
    FAIL() << "nobody threw";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "rank 1 was started with another configuration than rank 0; give all ranks the "
                 "same");
  }
}

TEST_F(TrainTest, InitFromAHubFolderWithAndWithoutMtp) {
  run("a");
  const std::string hub = out("a") + "/step-6";
  run("b", {"model.folder=", "model.init_from=" + hub, "train.learning_rate=0", "train.steps=1",
            "train.warmup_steps=0", "train.router_bias_update_rate=0"});
  EXPECT_EQ(weights("a"), weights("b", 1));

  // As transformers would save it: without the MTP layer.
  const SafetensorsFile file(hub + "/model.safetensors");
  std::vector<SafetensorsItem> items;
  for (const auto& [name, entry] : file.tensors())
    if (!name.starts_with("model.layers.3."))
      items.push_back({name, entry.dtype, entry.shape,
                       [&entry](std::byte* to) { std::copy_n(entry.data, entry.bytes, to); }});
  fs::create_directories(out("hub"));
  fs::copy(hub + "/config.json", out("hub") + "/config.json");
  write_safetensors(out("hub") + "/model.safetensors", items);
  EXPECT_THROW(run("c", {"model.folder=", "model.init_from=" + out("hub")}), InputError);
  EXPECT_NO_THROW(
      run("d", {"model.folder=", "model.init_from=" + out("hub"), "model.init_missing=mtp",
                "train.steps=1", "train.warmup_steps=0", "train.warmup_steps=0"}));
}

TEST_F(TrainTest, ANanStopsTheRunAndNamesTheTensor) {
  run("a");
  const std::string hub = out("a") + "/step-6";
  const std::string path = hub + "/model.safetensors";
  const std::string name = "model.layers.1.self_attn.o_proj.weight";
  int64_t offset = 0;
  {
    const std::string bytes = read_file(path);
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    const Value json = parse_json(bytes.substr(8, header), path);
    offset = 8 + static_cast<int64_t>(header) +
             *(*json.find(name)->find("data_offsets")->as_array())[0].as_int();
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  const uint32_t nan = 0x7fc00000;
  file.write(reinterpret_cast<const char*>(&nan), 4);
  file.close();
  try {
    run("b", {"model.folder=", "model.init_from=" + hub});
    FAIL() << "a NaN went through";
  } catch (const RunFailure& failure) {
    EXPECT_EQ(std::string(failure.what()),
              "step 1: loss nan, gradient norm nan; first bad tensor: layer 1, " + name);
  }
}

TEST_F(TrainTest, StepsAfterTheSecondTakeNothingNew) {
  for (const char* name : {"cpu", "emu:64MiB"}) {
    Log log(0, LogLevel::kWarning);
    auto device = make_device(name, {.threads = 2});
    Context ctx(*device, log);
    std::vector<std::string> warnings;
    const ModelConfig model_config =
        load_model_config(std::string(RONDO_SOURCE_DIR) + "/configs/tiny", warnings);
    Model model(ctx, model_config, {});
    model.set_weights(initial_values(model.table(), model_config, 1));
    Optimizer optimizer(ctx, model, {});
    const auto data = open_training_data(config().data, 257, [](const std::string&) {});
    int64_t reservations = 0, activations = 0;
    for (int64_t step = 1; step <= 5; ++step) {
      const std::vector<Batch> batches = {data.train.make_batch(step * 4, 2, 1),
                                          data.train.make_batch(step * 4 + 2, 2, 1)};
      run_step(ctx, model, optimizer, plain_schedule(2),
               {step, 1e-3, 1e-3, batches, BatchCounts::of(batches)});
      ctx.stream->synchronize("test.step");
      if (step == 2) {
        reservations = ctx.ledger.reservations();
        activations = ctx.ledger.of(MemoryClass::kActivations).peak;
      }
    }
    EXPECT_EQ(ctx.ledger.reservations(), reservations) << name;
    EXPECT_EQ(ctx.ledger.of(MemoryClass::kActivations).peak, activations) << name;
  }
}

}  // namespace
}  // namespace rondo::testing

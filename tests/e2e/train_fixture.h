// A small run in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "comm/inproc/inproc.h"
#include "train/data/pack.h"
#include "train/run.h"

namespace rondo::testing {

class TrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("rondo_e2e_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += "In verse " + std::to_string(i * 37 % 101) + " the " + (i % 3 ? "king" : "prophet") +
              " spoke to the people, and the people answered.\n";
    write_file_atomic(folder_ / "text.txt", text);
    PackOptions pack_options{.inputs = {(folder_ / "text.txt").string()},
                             .prefix = (folder_ / "text").string(),
                             .split = Split::kBytes,
                             .validation_fraction = 0.1};
    pack(
        pack_options, *make_byte_tokenizer(), [](const std::string&) {}, nullptr);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // configs/tiny, made shorter.
  RunConfig config(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> set = {
        "model.folder=" + std::string(RONDO_SOURCE_DIR) + "/configs/tiny",
        "data.train=" + (folder_ / "text-train").string(),
        "data.validation=" + (folder_ / "text-valid").string(),
        "train.steps=6",
        "train.eval_interval=0",
        "train.warmup_steps=2",
        "device.threads=2",
        "precision.peak_gflops=1e6",
    };
    set.insert(set.end(), more.begin(), more.end());
    return load_run_config(std::string(RONDO_SOURCE_DIR) + "/configs/tiny.toml", set);
  }
  std::string out(const std::string& name) const { return (folder_ / name).string(); }
  void run(const std::string& name, const std::vector<std::string>& more = {},
           bool resume = false) {
    Log log(0, LogLevel::kWarning);
    train(config(more), {.out = out(name), .resume = resume}, log);
  }
  // On threads as ranks.
  void run_on(int ranks, const std::string& name, const std::vector<std::string>& more = {},
              bool resume = false) {
    run_ranks(ranks, [&](std::unique_ptr<Channel> channel) {
      Log log(0, LogLevel::kWarning);
      train(config(more), {.out = out(name), .resume = resume}, log, {std::move(channel), ranks});
    });
  }
  std::string weights(const std::string& name, int step = 6) const {
    return read_file(out(name) + "/step-" + std::to_string(step) + "/model.safetensors");
  }
  // A key of every line of metrics.jsonl.
  std::vector<double> metric(const std::string& name, const std::string& key) const {
    std::vector<double> values;
    const std::string text = read_file(out(name) + "/metrics.jsonl");
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      const Value line = parse_json(text.substr(begin, end - begin), "metrics");
      const Value* v = line.find(key);
      if (v) values.push_back(v->as_int() ? static_cast<double>(*v->as_int()) : *v->as_double());
    }
    return values;
  }

  fs::path folder_;
};

}  // namespace rondo::testing

// What bad input gets: the first line on stderr and the exit code, of the program itself.
#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "train_fixture.h"

namespace rondo::testing {
namespace {

struct Outcome {
  std::string first_line;  // of stderr
  int code;
};

// Runs a shell line; $RONDO is the program.
Outcome shell(const std::string& line) {
  const std::string command = "RONDO='" + std::string(RONDO_PROGRAM) + "'; " + line;
  FILE* pipe = ::popen(("{ " + command + "; } 2>&1 >/dev/null").c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer;
  for (size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  return {text.substr(0, text.find('\n')), WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

class BadInput : public TrainTest {
 protected:
  void SetUp() override {
    TrainTest::SetUp();
    write_file_atomic(folder_ / "run.toml", to_toml(config()));
    fs::create_directories(folder_ / "model");
    write_model("");
  }

  // configs/tiny's config.json with one line more (the last of two equal keys is refused, so the
  // original goes).
  void write_model(const std::string& key, const std::string& value = "") {
    const std::string tiny = std::string(RONDO_SOURCE_DIR) + "/configs/tiny/config.json";
    Value json = parse_json(read_file(tiny), tiny);
    if (!key.empty()) json.set(key, parse_json(value, "test"));
    write_file_atomic(folder_ / "model/config.json", to_json(json, 2));
  }

  void expect(const std::string& line, const std::string& first_line, int code = 2) {
    const Outcome got = shell("D='" + folder_.string() + "'; " + line);
    std::string want = first_line;
    for (size_t at; (at = want.find("$D")) != std::string::npos;)
      want.replace(at, 2, folder_.string());
    EXPECT_EQ(got.first_line, want) << line;
    EXPECT_EQ(got.code, code) << line;
  }
};

const char* const kTrain = "$RONDO train $D/run.toml --out $D/new ";

TEST_F(BadInput, RunConfiguration) {
  const std::string train = kTrain;
  expect(train + "--set train.stepz=3",
         "rondo: $D/run.toml: train.stepz is not a known key; did you mean train.steps?");
  expect(train + "--set trian.steps=3",
         "rondo: $D/run.toml: trian is not a known key; did you mean train?");
  expect(train + "--set train.steps=many",
         "rondo: $D/run.toml: train.steps is a string; it must be an integer");
  expect(train + "--set train.steps=0",
         "rondo: $D/run.toml: train.steps is 0; it must lie between 1 and 1099511627776");
  expect(train + "--set train.steps",
         "rondo: --set train.steps: SECTION.KEY=VALUE is wanted, as in "
         "--set train.steps=100");
  expect(train + "--set train.micro_batch_size=3",
         "rondo: $D/run.toml: train.micro_batch_size is 3; it must divide batch_size, 8");
  expect(train + "--set data.sequence_length=512",
         "rondo: data.sequence_length is 512; " + std::string(RONDO_SOURCE_DIR) +
             "/configs/tiny has max_position_embeddings 256: use shorter sequences, or YaRN with a "
             "larger one");
  expect(train + "--set device.device=gpu",
         "rondo: device \"gpu\" is not known; use cpu or emu:SIZE, as in emu:64MiB");
  expect("$RONDO train $D/none.toml",
         "rondo: $D/none.toml: cannot open: No such file or directory");
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(BadInput, ModelConfiguration) {
  const std::string train = std::string(kTrain) + "--set model.folder=$D/model";
  const auto model = [&](const char* key, const char* value, const std::string& rest) {
    write_model(key, value);
    expect(train, "rondo: $D/model/config.json: " + rest);
  };
  model("n_group", "3", "n_group is 3; it must divide n_routed_experts (8)");
  model("num_experts_per_tok", "5", "num_experts_per_tok is 5; 1 of 2 groups leave 4 experts");
  model("qk_rope_head_dim", "7", "qk_rope_head_dim is 7; RoPE needs an even number");
  model("attention_bias", "true", "attention_bias is true; only false is supported");
  model("hidden_act", "\"gelu\"", "hidden_act is \"gelu\"; it must be one of silu");
  model("hiden_size", "32", "hiden_size is not a known key; did you mean hidden_size?");
  write_model("vocab_size", "100");
  expect(train,
         "rondo: $D/text-train: token 110 in document 0 at offset 1; it must be in [0, 100), the "
         "model's vocab_size (the data was packed with 257)");
}

TEST_F(BadInput, RunFolders) {
  run("old", {"train.steps=2", "train.warmup_steps=1"});
  const std::string resume = "$RONDO train $D/run.toml --resume --out $D/old ";
  expect("$RONDO train $D/run.toml --out $D/old",
         "rondo: $D/old: already holds a run; give another --out, or --resume to go on with it");
  expect("$RONDO train $D/run.toml --resume --out $D/new",
         "rondo: $D/new: holds no run to resume; leave out --resume to begin one");
  expect(resume + "--set train.batch_size=4",
         "rondo: $D/old/step-2: was trained with batch_size 8, this run has 4; resume with what it "
         "had");
  expect(resume + "--set data.seed=9",
         "rondo: $D/old/step-2: was trained on other data, or in another order, than this run's; "
         "resume with the data that it had");
  const FileLock lock(out("old") + "/lock");
  expect(resume,
         "rondo: $D/old is in use by another process; wait for it or choose another folder");
}

TEST_F(BadInput, DamagedCheckpointsAndDisks) {
  run("old", {"train.steps=2", "train.warmup_steps=1"});
  const std::string good = weights("old", 2);
  // No file may grow beyond 200 KiB: as a full disk, at the checkpoint of step 4.
  expect(
      "trap '' XFSZ; ulimit -f 200; $RONDO train $D/run.toml --resume --out $D/old "
      "--set train.steps=4 2>$D/err; code=$?; tail -n 1 $D/err >&2; (exit $code)",
      "rondo: $D/old/step-4.tmp/model.safetensors.tmp: cannot write: File too large", 2);
  EXPECT_EQ(weights("old", 2), good);
  EXPECT_FALSE(fs::exists(out("old") + "/step-4.tmp"));

  std::string bytes = good;
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomic(out("old") + "/step-2/model.safetensors", bytes);
  expect("$RONDO train $D/run.toml --resume --out $D/old",
         "rondo: $D/old/step-2/model.safetensors is damaged: its hash is not the one in "
         "rondo/state.json");
}

TEST_F(BadInput, Data) {
  expect("$RONDO data pack $D/none --out $D/x", "rondo: $D/none: there is no such file or folder");
  expect("$RONDO data pack $D/text.txt --out $D/text --validation-fraction 0.1",
         "rondo: $D/text-train.bin exists; choose another prefix, or give --overwrite");
  expect("$RONDO data inspect $D/none",
         "rondo: $D/none.idx: cannot open: No such file or directory");
  write_file_atomic(folder_ / "empty.txt", "");
  expect("$RONDO data pack $D/empty.txt --out $D/empty",
         "rondo: no text to pack: 1 files, all of them empty");
  fs::resize_file(folder_ / "text-train.bin", 1000);
  expect("$RONDO train $D/run.toml --out $D/new",
         "rondo: $D/text-train.bin: 1000 bytes, but $D/text-train.idx describes 48902; the two are "
         "not "
         "of one dataset, or one was cut");
}

TEST_F(BadInput, CommandLines) {
  expect("$RONDO tarin", "rondo: there is no command tarin; did you mean train?");
  expect("$RONDO frobnicate",
         "rondo: there is no command frobnicate; rondo --help shows what there is");
  expect("$RONDO train", "rondo: CONFIG is required; rondo --help shows what there is");
  expect("$RONDO eval $D/none --data $D/text-valid", "rondo: $D/none: is not there");
  expect("$RONDO generate $D --top-p 2", "rondo: --top-p is 2; it must be above 0 and at most 1");
}

}  // namespace
}  // namespace rondo::testing

#include "train/data/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "train/data/inspect.h"
#include "train/data/pack.h"
#include "train/data/test_dataset.h"

namespace rondo {
namespace {

DataConfig read(const std::string& toml) {
  const Value value = parse_toml("[data]\n" + toml, "c.toml");
  return read_data_config(Reader(value, "c.toml").section("data"), 7);
}

TEST(DataConfig, ReadsAndWritesBack) {
  const DataConfig least = read("train = 'a'\nsequence_length = 64");
  EXPECT_EQ(least.train, std::vector<std::string>{"a"});
  EXPECT_EQ(least.seed, 7u);
  EXPECT_TRUE(least.document_start);
  const std::string all =
      "train = ['a', 'b']\nweights = [1, 0.5]\nvalidation = 'v'\nsequence_length = 64\n"
      "seed = 3\neod_id = 0\ndocument_start = false\nvalidation_overlap = 16\n";
  const DataConfig full = read(all);
  EXPECT_EQ(full.weights, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(full.eod_id, 0);
  EXPECT_EQ(full.validation_overlap, 16);
  EXPECT_EQ(to_json(to_value(read(to_toml(to_value(full))))), to_json(to_value(full)));
  EXPECT_EQ(to_json(to_value(read(to_toml(to_value(least))))), to_json(to_value(least)));
}

TEST(DataConfig, SaysWhatIsWrong) {
  const auto error = [](const std::string& toml) { return input_error([&] { read(toml); }); };
  const std::string good = "train = 'a'\nsequence_length = 8\n";
  EXPECT_EQ(error("sequence_length = 8"),
            "c.toml: data.train must name at least one prefix of packed data");
  EXPECT_EQ(error(good + "weights = [1, 2]"),
            "c.toml: data.weights has 2 entries; it must have one for each of 1 prefixes");
  EXPECT_EQ(error(good + "weights = [0]"),
            "c.toml: data.weights holds 0; a weight must be positive");
  EXPECT_EQ(error(good + "valdation = 'x'"),
            "c.toml: data.valdation is not a known key; did you mean data.validation?");
  for (const char* line : {"seed = -1", "validation_overlap = 8", "eod_id = -1", "seed = 'x'"})
    EXPECT_EQ(error(good + line).find("c.toml: data."), 0u) << line;
  EXPECT_NE(error("train = 'a'\nsequence_length = 1"), "no error");
}

// From text to batches: what the trainer, the evaluation and the inspection are given.
TEST(TrainingData, PackedTextComesBackAsBatches) {
  const TestFolder folder;
  PackOptions options;
  options.inputs = {folder.write("t", std::string(90, 'a') + std::string(10, 'b')).string()};
  options.prefix = folder.prefix("d");
  options.split = Split::kBytes;
  options.validation_fraction = 0.1;
  const auto no_warning = [](const std::string& text) { ADD_FAILURE() << text; };
  pack(options, *make_byte_tokenizer(), no_warning, nullptr);
  DataConfig config;
  config.train = {options.prefix + "-train"};
  config.validation = options.prefix + "-valid";
  config.sequence_length = 16;
  config.validation_overlap = 4;
  const TrainingData data = open_training_data(config, 257, no_warning);
  EXPECT_EQ(data.tokenizer->kind(), "bytes");
  EXPECT_EQ(data.train.sequences(), 6);
  const Batch batch = data.train.make_batch(0, 6, 0);
  EXPECT_EQ(count_valid(batch.labels), 91);
  EXPECT_EQ(std::count(batch.ids.begin(), batch.ids.end(), 'b'), 0);
  EXPECT_EQ(data.validation->sequences(), 1);
  EXPECT_EQ(data.validation->predicted_tokens(), 11);
  EXPECT_DOUBLE_EQ(*data.validation->bits_per_byte(std::log(2.0) * 25), 2.5);
  config.sequence_length = 8;
  config.validation_overlap = 6;
  EXPECT_EQ(open_training_data(config, 257, no_warning).validation->sequences(), 3);
  expect_contains(
      input_error([&] { open_training_data(config, 256, no_warning); }),
      "d-train: token 256 in document 0 at offset 90; it must be in [0, 256), the model's "
      "vocab_size");
}

TEST(TrainingData, OneRunHasOneTokenizer) {
  const TestFolder folder;
  DataConfig config;
  config.train = {write_dataset(folder, "a", {{1, 2}}, 0)};
  config.validation = write_dataset(folder, "b", {{1, 2}}, 0);
  config.sequence_length = 4;
  folder.write("b.json", to_json(PackInfo{"bytes", "", "1", 257, 0, 1, 2, 1}));
  expect_contains(input_error([&] { open_training_data(config, 257, [](const std::string&) {}); }),
                  "was packed with another tokenizer than");
}

TEST(Inspect, CountsAndShows) {
  const TestFolder folder;
  const std::string prefix = write_dataset(
      folder, "d", {{72, 105, 10, 27, 92, 195, 169, 200, 256}, {256}, {65, 256}}, 256);
  const PackInfo info{"bytes", "", hex64(make_byte_tokenizer()->fingerprint()), 257, 256, 9, 12, 3};
  folder.write("d.json", to_json(info));
  const Inspection found = inspect(prefix, 9);
  EXPECT_EQ(found.documents, 3);
  EXPECT_EQ(found.empty_documents, 1);
  EXPECT_EQ(found.least_id, 10);
  EXPECT_EQ(found.largest_id, 256);
  EXPECT_EQ(found.shortest, 1);
  EXPECT_EQ(found.median, 2);
  EXPECT_EQ(found.longest, 9);
  EXPECT_EQ(found.lengths,
            (std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 1}, {4, 0}, {8, 0}, {16, 1}}));
  EXPECT_EQ(*found.first_text, "Hi\n\x1B\\\xC3\xA9\xC8");
  const std::string text = to_text(found);
  expect_contains(text, "documents   3, of which 1 empty\n");
  expect_contains(text, "first text  Hi\\n\\x1B\\\\\xC3\xA9\\xC8\n");
  fs::remove(prefix + ".json");
  EXPECT_FALSE(inspect(prefix).first_text);
  const std::string empty = write_dataset(folder, "e", {});
  expect_contains(to_text(inspect(empty)), "documents   0, of which 0 empty");
}

}  // namespace
}  // namespace rondo

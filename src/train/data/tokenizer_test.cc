#include "train/data/tokenizer.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "train/data/sentencepiece.h"
#include "train/data/test_folder.h"
#include "train/data/utf8.h"

namespace rondo {
namespace {

// Any bytes, with a liking for what breaks tokenizers: white space, U+2581, cut characters, the
// names of pieces, NUL.
std::string any_bytes(uint64_t seed) {
  const std::string parts[] = {" ",
                               "  ",
                               "\n",
                               "\t",
                               "\r\n",
                               "the ",
                               "\xE2\x96\x81",
                               "\xE2\x96",
                               "\xC3",
                               "<s>",
                               "<eod>",
                               "<unk>",
                               "<0x41>",
                               "\xF0\x9F\x99\x82",
                               "\xEF\xAC\x81",
                               std::string("\0", 1),
                               "\xE2\x96\x85",
                               "word",
                               "e\xCC\x81",
                               "\xED\xA0\x80",
                               "\xEF\xBF\xBD",
                               "123"};
  std::string out;
  const uint32_t count = philox({seed}, 0, 0)[0] % 60;
  for (uint32_t i = 0; i < count; ++i) {
    const auto dice = philox({seed}, 1, i);
    if (dice[0] % 3 == 0)
      out += static_cast<char>(dice[1]);
    else
      out += parts[dice[1] % std::size(parts)];
  }
  return out;
}

std::string some_prose() {
  const char* words[] = {"and", "the", "Lord", "said", "unto", "Moses", "Let", "there", "be"};
  std::string out;
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto dice = philox({9}, i, 0);
    out += words[dice[0] % 9];
    out += dice[1] % 12 == 0 ? ".\n" : dice[1] % 7 == 0 ? ", " : " ";
    if (dice[2] % 100 == 0) out += "\n    caf\xC3\xA9 12:34 ";
  }
  return out;
}

TrainedSentencePiece train(const TestFolder& folder, const std::string& text,
                           SentencePieceTraining training) {
  const fs::path path = folder.write("text", text);
  return train_sentencepiece({{path, text.size()}}, training);
}

void expect_lossless(const Tokenizer& tokenizer) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const std::string text = any_bytes(seed);
    const std::vector<int32_t> ids = tokenizer.encode(text);
    for (const int32_t id : ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, tokenizer.vocab_size());
      ASSERT_NE(id, tokenizer.eod_id());
    }
    ASSERT_EQ(tokenizer.decode(ids), text) << "seed " << seed;
  }
}

TEST(Utf8, KnowsWholeCharacters) {
  EXPECT_EQ(utf8_prefix("a\xC3\xA9\xE2\x96\x81\xF0\x9F\x99\x82"), 10u);
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5", "\xC3", "\xE2\x96", "\xC3\x28", "\xE2\x96\x28", "\xF0\x9F\x99"})
    EXPECT_EQ(utf8_prefix(std::string("ab") + bad), 2u) << bad;
  EXPECT_EQ(utf8_prefix(""), 0u);
}

TEST(ByteTokenizer, IsLossless) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_EQ(tokenizer->vocab_size(), 257);
  EXPECT_EQ(tokenizer->eod_id(), 256);
  EXPECT_EQ(tokenizer->encode("a\xFF"), (std::vector<int32_t>{97, 255}));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{104, 256, 105, -1, 999}), "hi");
  expect_lossless(*tokenizer);
}

class SentencePieceTest : public testing::TestWithParam<const char*> {};

TEST_P(SentencePieceTest, IsLosslessCompressesAndTrainsToTheSameBytes) {
  const TestFolder folder;
  SentencePieceTraining training;
  training.vocab_size = 300;
  training.algorithm = GetParam();
  const std::string prose = some_prose();
  const TrainedSentencePiece trained = train(folder, prose, training);
  EXPECT_EQ(trained.used_bytes, prose.size());
  EXPECT_EQ(train(folder, prose, training).model, trained.model);
  const auto tokenizer = make_tokenizer("sentencepiece", trained.model, "t");
  EXPECT_EQ(tokenizer->vocab_size(), 300);
  EXPECT_EQ(tokenizer->model(), trained.model);
  expect_lossless(*tokenizer);
  // Longer than a chunk, and with no place to cut at but between characters.
  std::string long_text = prose;
  for (int i = 0; i < 30000; ++i) long_text += "\xC3\xA9";
  const std::vector<int32_t> ids = tokenizer->encode(long_text);
  EXPECT_EQ(tokenizer->decode(ids), long_text);
  EXPECT_LT(tokenizer->encode(prose).size() * 3, prose.size() * 2);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, SentencePieceTest, testing::Values("bpe", "unigram"));

TEST(SentencePiece, TakesAnEvenChoiceOfLongInput) {
  const TestFolder folder;
  SentencePieceTraining training;
  training.vocab_size = 290;
  training.most_bytes = 40000;
  const TrainedSentencePiece trained = train(folder, some_prose(), training);
  EXPECT_GT(trained.used_bytes, 15000u);
  EXPECT_LT(trained.used_bytes, 80000u);
  EXPECT_GT(trained.input_bytes, 90000u);
}

TEST(SentencePiece, TrainingRefusesWhatCannotBe) {
  const TestFolder folder;
  SentencePieceTraining training;
  EXPECT_EQ(input_error([&] { train(folder, "", training); }),
            "no text to train a tokenizer on, in 1 files");
  EXPECT_EQ(input_error([&] { train(folder, "\xFF\xFE", training); }),
            "no text to train a tokenizer on, in 1 files");
  expect_contains(input_error([&] { train(folder, "too little text\n", training); }),
                  "cannot train a tokenizer of vocab_size 4096 on 16 bytes: ");
  training.vocab_size = 2000;
  expect_contains(input_error([&] { train(folder, "abc abd\n", training); }),
                  "cannot train a tokenizer of vocab_size 2000 on 8 bytes: Vocabulary size too "
                  "high (2000). ");
  training.vocab_size = 5;
  EXPECT_EQ(input_error([&] { train(folder, "abc", training); }),
            "tokenizer vocab_size is 5; it must lie between 260 and 16777216");
}

TEST(SentencePiece, RefusesWhatIsNoModel) {
  const TestFolder folder;
  const std::string path = folder.write("x.model", "not a model").string();
  expect_contains(input_error([&] { open_tokenizer(path); }), path + ": not a SentencePiece model");
  expect_contains(input_error([&] { make_tokenizer("sentencepiece", "", "s"); }), "s: not a ");
  EXPECT_EQ(input_error([] { make_tokenizer("words", "", "c.json"); }),
            "c.json: tokenizer \"words\"; it must be \"bytes\" or \"sentencepiece\"");
  EXPECT_EQ(input_error([] { open_tokenizer("no-such"); }),
            "tokenizer \"no-such\": it must be `bytes` or an existing SentencePiece .model file");
}

TEST(SentencePiece, EveryCutModelIsRefusedOrLossless) {
  const TestFolder folder;
  SentencePieceTraining training;
  training.vocab_size = 290;
  const std::string model = train(folder, some_prose(), training).model;
  for (size_t size = 0; size < model.size(); size += 37) {
    try {
      const auto tokenizer = make_tokenizer("sentencepiece", model.substr(0, size), "cut");
      EXPECT_EQ(tokenizer->decode(tokenizer->encode("the  Lord\n")), "the  Lord\n");
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace rondo

#include "train/data/pack.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "train/data/indexed.h"
#include "train/data/sentencepiece.h"
#include "train/data/test_folder.h"

namespace rondo {
namespace {

struct Packer {
  TestFolder folder;
  PackOptions options;
  std::vector<std::string> warnings;
  std::vector<uint64_t> progress;

  Packer() { options.prefix = folder.prefix("out/data"); }
  PackResult run(const Tokenizer& tokenizer) {
    return pack(
        options, tokenizer, [&](const std::string& text) { warnings.push_back(text); },
        [&](uint64_t done, uint64_t) { progress.push_back(done); });
  }
  PackResult run() { return run(*make_byte_tokenizer()); }
  std::string error() {
    return input_error([&] { run(); });
  }
  void input(const std::string& name, std::string_view text) {
    options.inputs.push_back(folder.write(name, text).string());
  }
};

// The documents as text, each of which must end with its eod and hold no other.
std::vector<std::string> texts(const std::string& prefix, const Tokenizer& tokenizer) {
  const IndexedDataset dataset(prefix);
  std::vector<std::string> out;
  for (int64_t d = 0; d < dataset.documents(); ++d) {
    std::string text;
    for (int64_t t = dataset.document_begin(d); t < dataset.document_begin(d + 1); ++t) {
      const bool last = t + 1 == dataset.document_begin(d + 1);
      EXPECT_EQ(dataset.token(t) == tokenizer.eod_id(), last);
      text += tokenizer.bytes_of(dataset.token(t));
    }
    out.push_back(text);
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(Pack, FilesAreDocumentsAndFoldersAreSorted) {
  Packer packer;
  for (const char* name : {"b/z.txt", "b/a/x.cc", "b/Y.md", "b/.git/config", "b/a/.hidden"})
    packer.folder.write(name, name);
  fs::create_symlink(packer.folder / "b/z.txt", packer.folder / "b/link");
  fs::create_directory_symlink(packer.folder / "b", packer.folder / "b/a/loop");
  packer.input("first.txt", "one");
  packer.options.inputs.push_back((packer.folder / "b").string());
  const PackResult result = packer.run();
  EXPECT_EQ(texts(packer.options.prefix, *make_byte_tokenizer()),
            (Texts{"one", "b/Y.md", "b/a/x.cc", "b/z.txt"}));
  EXPECT_EQ(packer.warnings,
            Texts{(packer.folder / "b").string() +
                  ": left out 2 symbolic links, 2 names that begin with a dot, 0 special files"});
  EXPECT_FALSE(result.validation);
  EXPECT_EQ(result.train.info.raw_bytes, 24);
  EXPECT_EQ(result.train.info.tokens, 28);
  EXPECT_EQ(result.train.info.documents, 4);
  EXPECT_EQ(read_pack_info(packer.options.prefix), result.train.info);
  EXPECT_EQ(packer.progress.back(), 24u);
}

TEST(Pack, SplitByBytesHoldsOutTheLastBytes) {
  for (const double fraction : {0.05, 0.3, 0.5, 0.77, 0.99}) {
    Packer packer;
    packer.input("a", "0123456789");
    packer.input("b", "");
    packer.input("c", "abcdefghij");
    packer.input("d", "ABCDEFGHIJ");
    packer.options.split = Split::kBytes;
    packer.options.validation_fraction = fraction;
    const PackResult result = packer.run();
    const auto tokenizer = make_byte_tokenizer();
    const auto joined = [&](const std::string& prefix) {
      std::string out;
      for (const std::string& text : texts(prefix, *tokenizer)) out += text;
      return out;
    };
    const std::string all = "0123456789abcdefghijABCDEFGHIJ";
    const size_t cut = 30 - static_cast<size_t>(30 * fraction);
    EXPECT_EQ(joined(result.train.prefix), all.substr(0, cut));
    EXPECT_EQ(joined(result.validation->prefix), all.substr(cut));
    EXPECT_EQ(result.validation->info.raw_bytes, static_cast<int64_t>(30 - cut));
    EXPECT_EQ(result.validation->prefix, packer.options.prefix + "-valid");
  }
}

TEST(Pack, SplitByDocumentsCutsNone) {
  Packer packer;
  Texts all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(fmt::format("document {:02}", i));
    packer.input(all.back(), all.back());
  }
  packer.options.split = Split::kDocuments;
  packer.options.validation_fraction = 0.25;
  const PackResult result = packer.run();
  const Texts train = texts(result.train.prefix, *make_byte_tokenizer());
  const Texts valid = texts(result.validation->prefix, *make_byte_tokenizer());
  EXPECT_EQ(valid.size(), 5u);
  Texts both = train;
  both.insert(both.end(), valid.begin(), valid.end());
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, all);
  EXPECT_NE(valid, Texts(all.end() - 5, all.end()));  // chosen, not the last
}

TEST(Pack, WarnsOfEmptyDocumentsAndInvalidUtf8) {
  Packer packer;
  packer.input("a", "fine");
  packer.input("b", "");
  packer.input("c", "ab\xFFz");
  packer.input("d", "");
  const PackResult result = packer.run();
  EXPECT_EQ(texts(packer.options.prefix, *make_byte_tokenizer()),
            (Texts{"fine", "", "ab\xFFz", ""}));
  EXPECT_EQ(packer.warnings,
            (Texts{"2 empty documents, the first " + packer.options.inputs[1],
                   "1 documents are not valid UTF-8, the first " + packer.options.inputs[2] +
                       " at byte 2; their bytes go through as they are"}));
  EXPECT_EQ(result.empty_documents, 2);
}

TEST(Pack, NothingIsOverwrittenUnlessAsked) {
  for (const char* kind : {".bin", ".idx", ".json"}) {
    Packer packer;
    packer.input("a", "text");
    const std::string taken = packer.options.prefix + kind;
    packer.folder.write(std::string("out/data") + kind, "mine");
    EXPECT_EQ(packer.error(), taken + " exists; choose another prefix, or give --overwrite");
    EXPECT_EQ(read_file(taken), "mine");
    packer.options.overwrite = true;
    packer.run();
    EXPECT_EQ(texts(packer.options.prefix, *make_byte_tokenizer()), Texts{"text"});
  }
}

TEST(Pack, AnErrorLeavesNothingBehind) {
  Packer packer;
  packer.input("a", "text");
  packer.input("b", "more");
  fs::remove(packer.folder / "b");
  EXPECT_EQ(packer.error(), packer.options.inputs[1] + ": there is no such file or folder");
  packer.folder.write("b", "more");
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_THROW(pack(
                   packer.options, *tokenizer, [](const std::string&) {},
                   [&](uint64_t done, uint64_t) {
                     if (done > 4) fail_input("interrupted");
                   }),
               InputError);
  EXPECT_TRUE(fs::is_empty(packer.folder / "out"));
}

TEST(Pack, RefusesASideOfEmptyDocumentsAndLeavesNothingBehind) {
  Packer packer;
  packer.input("a", "text");
  for (int i = 0; i < 19; ++i) packer.input(fmt::format("empty{}", i), "");
  packer.options.split = Split::kDocuments;
  packer.options.validation_fraction = 0.05;
  expect_contains(packer.error(), ": it would hold only empty documents; choose another split");
  EXPECT_TRUE(fs::is_empty(packer.folder / "out"));
}

TEST(Pack, RefusesWhatCannotBe) {
  Packer packer;
  packer.input("a", "");
  EXPECT_EQ(packer.error(), "no text to pack: 1 files, all of them empty");
  packer.input("b", "0123456789");
  packer.options.split = Split::kBytes;
  packer.options.validation_fraction = 0.05;
  EXPECT_EQ(packer.error(),
            "validation fraction 0.05 of 10 bytes holds out 0; both parts must hold something");
  packer.options.validation_fraction = 1.5;
  EXPECT_EQ(packer.error(), "validation fraction 1.5: it must lie between 0 and 1");
  packer.options.prefix = packer.folder.prefix("out/");
  EXPECT_EQ(packer.error(), "prefix \"" + packer.options.prefix + "\": it must end in a file name");
  EXPECT_FALSE(fs::exists(packer.folder / "out"));
}

TEST(Pack, SentencePieceGoesAlongWithTheData) {
  Packer packer;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += i % 3 ? "and the Lord said\n" : "  let there be light, ";
  packer.input("a", text);
  SentencePieceTraining training;
  training.vocab_size = 280;
  const std::string model =
      train_sentencepiece({{packer.options.inputs[0], text.size()}}, training).model;
  const auto tokenizer = make_tokenizer("sentencepiece", model, "t");
  const PackResult result = packer.run(*tokenizer);
  EXPECT_EQ(texts(packer.options.prefix, *tokenizer), Texts{text});
  EXPECT_EQ(result.train.info.tokenizer_file, "data-tokenizer.model");
  const auto again = open_packed_tokenizer(packer.options.prefix, result.train.info);
  EXPECT_EQ(again->fingerprint(), tokenizer->fingerprint());
  training.vocab_size = 281;
  packer.folder.write(
      "out/data-tokenizer.model",
      train_sentencepiece({{packer.options.inputs[0], text.size()}}, training).model);
  expect_contains(
      input_error([&] { open_packed_tokenizer(packer.options.prefix, result.train.info); }),
      "it must be the same tokenizer");
}

TEST(Pack, AHugeFileIsTokenizedInPieces) {
  Packer packer;
  std::string text;
  while (text.size() < (9u << 20)) text += "no line is too long here\n";
  text += std::string(5 << 20, 'x');  // and then there is no line at all
  packer.input("a", text);
  packer.run();
  EXPECT_GE(packer.progress.size(), 4u);
  const IndexedDataset dataset(packer.options.prefix);
  EXPECT_EQ(dataset.documents(), 1);
  ASSERT_EQ(dataset.tokens(), static_cast<int64_t>(text.size()) + 1);
  std::vector<int64_t> tokens(text.size());
  dataset.read(0, tokens);
  EXPECT_TRUE(std::equal(text.begin(), text.end(), tokens.begin()));
}

TEST(PackInfo, DamageIsRefusedByName) {
  const TestFolder folder;
  const std::string prefix = folder.prefix("d");
  EXPECT_EQ(read_pack_info(prefix), std::nullopt);
  const std::string good = to_json(PackInfo{"bytes", "", "0", 257, 256, 1, 2, 1});
  folder.write("d.json", good);
  EXPECT_EQ(read_pack_info(prefix)->vocab_size, 257);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"rondo-packed-1", "rondo-packed-2"},
                                                        {"\"eod_id\": 256", "\"eod_id\": 257"},
                                                        {"raw_bytes", "raw_byte"},
                                                        {"\"bytes\"", "\"words\""},
                                                        {"\"tokens\": 2", "\"tokens\": -2"},
                                                        {"\"bytes\"", "\"sentencepiece\""}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    folder.write("d.json", bad);
    EXPECT_EQ(input_error([&] { read_pack_info(prefix); }).find(prefix + ".json: "), 0u) << to;
  }
}

}  // namespace
}  // namespace rondo

#include "train/data/indexed.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "train/data/test_folder.h"

namespace rondo {
namespace {

using Documents = std::vector<std::vector<int32_t>>;

void write_dataset(const std::string& prefix, TokenType type, const Documents& documents,
                   int64_t longest_sequence = INT32_MAX) {
  IndexedWriter writer(bin_path(prefix), idx_path(prefix), type, longest_sequence);
  for (const auto& document : documents) {
    // In two pieces: a document may arrive bit by bit.
    const std::span<const int32_t> all(document);
    writer.add(all.first(all.size() / 2));
    writer.add(all.subspan(all.size() / 2));
    writer.end_document();
  }
  writer.finish();
}

Documents read_documents(const IndexedDataset& dataset) {
  Documents out;
  for (int64_t d = 0; d < dataset.documents(); ++d) {
    const int64_t begin = dataset.document_begin(d);
    std::vector<int64_t> tokens(dataset.document_begin(d + 1) - begin);
    dataset.read(begin, tokens);
    out.emplace_back(tokens.begin(), tokens.end());
  }
  return out;
}

std::string open_error(const std::string& prefix) {
  return input_error([&] { IndexedDataset dataset(prefix); });
}

TEST(Indexed, TheBytesAreMegatrons) {
  const TestFolder folder;
  write_dataset(folder.prefix("d"), TokenType::kU16, {{1, 2}, {515}});
  EXPECT_EQ(read_file(folder / "d.bin"), std::string("\1\0\2\0\3\2", 6));
  std::string idx("MMIDIDX\0\0\1\0\0\0\0\0\0\0\10", 18);
  const auto put = [&](auto value) {
    idx.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(int64_t{2}), put(int64_t{3});                   // sequences, document indices
  put(int32_t{2}), put(int32_t{1});                   // sizes
  put(int64_t{0}), put(int64_t{4});                   // pointers
  put(int64_t{0}), put(int64_t{1}), put(int64_t{2});  // document indices
  EXPECT_EQ(read_file(folder / "d.idx"), idx);
}

TEST(Indexed, TypeFollowsTheVocabulary) {
  EXPECT_EQ(token_type_for(65499), TokenType::kU16);
  EXPECT_EQ(token_type_for(65500), TokenType::kI32);
}

TEST(Indexed, AnyDocumentsReadBack) {
  const TestFolder folder;
  for (uint64_t round = 0; round < 60; ++round) {
    const auto dice = philox({1}, round, 0);
    Documents documents(dice[0] % 20);
    for (size_t d = 0; d < documents.size(); ++d) {
      const auto shape = philox({2}, round, d);
      for (uint32_t i = 0; i < shape[0] % 40; ++i)
        documents[d].push_back(static_cast<int32_t>(philox({3 + d}, round, i)[0] % 128));
    }
    const TokenType types[] = {TokenType::kU8,  TokenType::kI8,  TokenType::kI16,
                               TokenType::kI32, TokenType::kI64, TokenType::kU16};
    const std::string prefix = folder.prefix("d");
    write_dataset(prefix, types[round % 6], documents, 1 + dice[1] % 30);
    const IndexedDataset dataset(prefix);
    ASSERT_EQ(read_documents(dataset), documents) << "round " << round;
    for (int64_t d = 0, t = 0; d < dataset.documents(); ++d)
      for (size_t i = 0; i < documents[d].size(); ++i, ++t) {
        ASSERT_EQ(dataset.document_of(t), d);
        ASSERT_EQ(dataset.token(t), documents[d][i]);
      }
  }
}

TEST(Indexed, ALongDocumentIsSeveralSequences) {
  const TestFolder folder;
  write_dataset(folder.prefix("d"), TokenType::kI32, {{1, 2, 3, 4, 5}, {}, {6, 7}}, 2);
  const IndexedDataset dataset(folder.prefix("d"));
  EXPECT_EQ(dataset.sequences(), 5);
  EXPECT_EQ(dataset.documents(), 3);
  EXPECT_EQ(dataset.document_begin(2), 5);
}

TEST(Indexed, PastFourGiBOfTokens) {
  // A sparse .bin of 5 GiB stands for what no test would write.
  const TestFolder folder;
  const int64_t size = 1'342'177'280;  // i32 tokens; two sequences, the second begins past 4 GiB
  const std::string prefix = folder.prefix("big");
  std::string idx("MMIDIDX\0\0\1\0\0\0\0\0\0\0\4", 18);
  const auto put = [&](auto value) {
    idx.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(int64_t{2}), put(int64_t{3});
  put(static_cast<int32_t>(size)), put(int32_t{1000});
  put(int64_t{0}), put(size * 4);
  put(int64_t{0}), put(int64_t{1}), put(int64_t{2});
  folder.write("big.idx", idx);
  folder.write("big.bin", "");
  fs::resize_file(bin_path(prefix), static_cast<uintmax_t>(size + 1000) * 4);
  const IndexedDataset dataset(prefix);
  EXPECT_EQ(dataset.document_begin(1), size);
  EXPECT_EQ(dataset.document_of(size + 999), 1);
  EXPECT_EQ(dataset.token(size + 999), 0);
}

TEST(Indexed, RefusesEveryTruncationByName) {
  const TestFolder folder;
  const std::string prefix = folder.prefix("d");
  write_dataset(prefix, TokenType::kU16, {{1, 2, 3}, {4}, {}, {5, 6}});
  const std::string idx = read_file(idx_path(prefix)), bin = read_file(bin_path(prefix));
  for (size_t length = 0; length < idx.size(); ++length) {
    folder.write("d.idx", idx.substr(0, length));
    ASSERT_EQ(open_error(prefix).find(prefix + ".idx: "), 0u) << length;
  }
  folder.write("d.idx", idx + '\0');
  expect_contains(open_error(prefix), "do not fit its header of 4 sequences");
  folder.write("d.idx", idx);
  EXPECT_EQ(open_error(prefix), "no error");
  for (size_t length = 0; length < bin.size(); ++length) {
    folder.write("d.bin", bin.substr(0, length));
    ASSERT_EQ(open_error(prefix), fmt::format("{0}.bin: {1} bytes, but {0}.idx describes 12; the "
                                              "two are not of one dataset, or one was cut",
                                              prefix, length));
  }
  fs::remove(bin_path(prefix));
  EXPECT_EQ(open_error(prefix), prefix + ".bin: cannot open: No such file or directory");
}

TEST(Indexed, RefusesEveryFlippedBitOfTheHeader) {
  const TestFolder folder;
  const std::string prefix = folder.prefix("d");
  write_dataset(prefix, TokenType::kU16, {{1, 2, 3}, {4}, {}, {5, 6}});
  const std::string idx = read_file(idx_path(prefix));
  for (size_t bit = 0; bit < 34 * 8; ++bit) {
    std::string bad = idx;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    folder.write("d.idx", bad);
    ASSERT_EQ(open_error(prefix).find(prefix + ".idx: "), 0u) << "bit " << bit;
  }
}

TEST(Indexed, ADamagedTableIsRefusedOrStillConsistent) {
  const TestFolder folder;
  const std::string prefix = folder.prefix("d");
  write_dataset(prefix, TokenType::kU16, {{1, 2, 3}, {4}, {}, {5, 6}});
  const std::string idx = read_file(idx_path(prefix));
  const size_t documents_at = 34 + 4 * 12;
  for (size_t bit = 34 * 8; bit < idx.size() * 8; ++bit) {
    std::string bad = idx;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    folder.write("d.idx", bad);
    const std::string error = open_error(prefix);
    if (bit / 8 < documents_at) {
      ASSERT_NE(error, "no error") << "bit " << bit;
    } else if (error == "no error") {  // another, equally valid cut into documents
      ASSERT_EQ(read_documents(IndexedDataset(prefix)).size(), 4u);
    }
  }
}

TEST(Indexed, RefusesHugeCountsAndFloats) {
  const TestFolder folder;
  const std::string prefix = folder.prefix("d");
  write_dataset(prefix, TokenType::kU16, {{1}});
  const std::string idx = read_file(idx_path(prefix));
  for (const size_t at : {18, 26})
    for (const uint64_t count : {~uint64_t{0}, ~uint64_t{0} / 12 + 1, uint64_t{1} << 61}) {
      std::string bad = idx;
      std::memcpy(bad.data() + at, &count, 8);
      folder.write("d.idx", bad);
      expect_contains(open_error(prefix), "do not fit its header");
    }
  std::string bad = idx;
  bad[17] = 7;
  folder.write("d.idx", bad);
  EXPECT_EQ(open_error(prefix),
            prefix + ".idx: dtype code 7 at byte 17; tokens are of code 1 to 5 or 8, integers");
}

TEST(Indexed, WriterRefusesATokenThatDoesNotFit) {
  const TestFolder folder;
  EXPECT_THROW(write_dataset(folder.prefix("d"), TokenType::kU16, {{65536}}), InvariantError);
}

TEST(Indexed, FingerprintSeesTokensAndCuts) {
  const TestFolder folder;
  const std::string prefix = folder.prefix("d");
  const auto print = [&](const Documents& documents) {
    write_dataset(prefix, TokenType::kU16, documents);
    return IndexedDataset(prefix).fingerprint();
  };
  const uint64_t first = print({{1, 2}, {3}});
  EXPECT_EQ(print({{1, 2}, {3}}), first);
  EXPECT_NE(print({{1, 2}, {4}}), first);
  EXPECT_NE(print({{1}, {2, 3}}), first);
}

}  // namespace
}  // namespace rondo

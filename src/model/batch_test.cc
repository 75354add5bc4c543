#include "model/batch.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace rondo {
namespace {

constexpr int32_t kX = kIgnoreLabel;
using Ints = std::vector<int32_t>;
using Flags = std::vector<uint8_t>;

// Document 0: tokens 1..4, ended. Document 1: tokens 5..7, cut, 8 comes next. Then padding.
Batch two_documents() {
  Batch batch;
  batch.ids = {1, 2, 3, 4, 5, 6, 7, 0};
  batch.labels = {2, 3, 4, kX, 6, 7, 8, kX};
  for (int i = 0; i < 4; ++i) batch.places.push_back({0, i, 0, i});
  for (int i = 0; i < 3; ++i) batch.places.push_back({0, 4 + i, 1, i});
  batch.places.push_back({0, 7, -1, 0});
  return batch;
}

TEST(Batch, CountsLabelsThatCount) {
  EXPECT_EQ(count_valid(two_documents().labels), 6);
  EXPECT_EQ(count_valid({}), 0);
}

TEST(Batch, MtpStaysInTheDocument) {
  Batch batch = two_documents();
  make_mtp(batch, 3);
  ASSERT_EQ(batch.mtp.size(), 3u);
  EXPECT_EQ(batch.mtp[0].ids, (Ints{2, 3, 4, 0, 6, 7, 0, 0}));
  EXPECT_EQ(batch.mtp[0].labels, (Ints{3, 4, kX, kX, 7, 8, kX, kX}));
  EXPECT_EQ(batch.mtp[0].valid, (Flags{1, 1, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(batch.mtp[1].ids, (Ints{3, 4, 0, 0, 7, 0, 0, 0}));
  EXPECT_EQ(batch.mtp[1].labels, (Ints{4, kX, kX, kX, 8, kX, kX, kX}));
  EXPECT_EQ(batch.mtp[2].valid, (Flags{1, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Batch, MtpLabelIsTheTokenWhereTheMainLabelIsIgnored) {
  Batch batch = two_documents();
  batch.labels[1] = kX;  // by the data, not by the document's end
  make_mtp(batch, 1);
  EXPECT_EQ(batch.mtp[0].labels[0], 3);
  EXPECT_EQ(batch.mtp[0].labels[1], 4);
}

TEST(Batch, MtpTellsSamplesApart) {
  Batch batch = two_documents();
  for (int i = 4; i < 7; ++i) batch.places[i] = {1, i - 4, 0, i - 4};
  make_mtp(batch, 1);
  EXPECT_EQ(batch.mtp[0].valid, (Flags{1, 1, 1, 0, 1, 1, 0, 0}));
}

TEST(Batch, MtpRefusesADocumentOutOfOrder) {
  Batch batch = two_documents();
  std::swap(batch.places[1], batch.places[2]);
  EXPECT_THROW(make_mtp(batch, 1), InvariantError);
}

TEST(Batch, MtpOfNothing) {
  Batch batch;
  make_mtp(batch, 2);
  EXPECT_EQ(batch.mtp.size(), 2u);
  EXPECT_TRUE(batch.mtp[1].ids.empty());
}

}  // namespace
}  // namespace rondo

#include "memory/saved.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

TEST(Saved, KeepsUntilReleasedAndGivesTheMemoryBack) {
  auto device = make_device("cpu", {});
  Log log;
  Context ctx(*device, log);
  Saved saved;
  saved.save(0, 3, SavedClass::kNorm, "inv", ctx.activation({8}));
  saved.save(0, 4, SavedClass::kNorm, "inv", ctx.activation({8}));
  EXPECT_EQ(saved.fetch(0, 3, "inv").elements(), 8);
  EXPECT_THROW(saved.fetch(1, 3, "inv"), InvariantError);
  EXPECT_THROW(saved.save(0, 3, SavedClass::kNorm, "inv", ctx.activation({8})), InvariantError);
  saved.release(0, 3);
  EXPECT_FALSE(saved.has(0, 3, "inv"));
  EXPECT_TRUE(saved.has(0, 4, "inv"));
  EXPECT_EQ(ctx.ledger.of(MemoryClass::kActivations).current, 32);
  saved.release(0, 4);
  EXPECT_EQ(ctx.ledger.of(MemoryClass::kActivations).current, 0);
}

TEST(Saved, KeepsNothingInEvaluation) {
  auto device = make_device("cpu", {});
  Log log;
  Context ctx(*device, log);
  Saved saved(false);
  saved.save(0, 0, SavedClass::kNorm, "inv", ctx.activation({8}));
  EXPECT_TRUE(saved.empty());
  EXPECT_EQ(ctx.ledger.of(MemoryClass::kActivations).current, 0);
}

}  // namespace
}  // namespace rondo

// No operation without its cost, nor without a place in this program.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "base/file.h"

namespace rondo::testing {
namespace {

const fs::path kRoot = RONDO_SOURCE_DIR;

std::string everything_in(const fs::path& folder, const std::string& end) {
  std::string all;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().string().ends_with(end)) all += read_file(entry.path().string());
  return all;
}

std::set<std::string> found(const std::string& text, const std::string& pattern) {
  std::set<std::string> out;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
    out.insert((*it)[1]);
  return out;
}

TEST(Coverage, EveryOperationConforms) {
  const auto operations =
      found(everything_in(kRoot / "src/kernels/ops", ".h"), R"(struct (\w+Args) \{)");
  const auto tested =
      found(everything_in(kRoot / "tests/conformance", "_test.cc"), R"(conform<(\w+)>)");
  ASSERT_GT(operations.size(), 20u);
  for (const std::string& args : operations)
    EXPECT_TRUE(tested.contains(args)) << args << " has no conform<" << args << ">";
}

TEST(Coverage, EveryOperationStatesItsCost) {
  for (const auto& entry : fs::directory_iterator(kRoot / "src/kernels/ops")) {
    const std::string name = entry.path().stem().string();
    if (name.ends_with("cost")) continue;
    EXPECT_TRUE(fs::exists(entry.path().parent_path() / (name + "_cost.h"))) << entry.path();
  }
}

TEST(Coverage, EveryListHasAVectorisedVersion) {
  int lists = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "src/kernels/lists")) {
    const std::string text = read_file(entry.path().string());
    const std::regex list(R"(Implementation<(\w+)> kList\[\] = \{([\s\S]*?)\n  \};)");
    for (std::sregex_iterator it(text.begin(), text.end(), list), end; it != end; ++it, ++lists)
      EXPECT_TRUE((*it)[2].str().find("\"cpu\"") != std::string::npos)
          << entry.path() << ": " << (*it)[1] << " has the reference alone";
  }
  EXPECT_GT(lists, 20);
}

}  // namespace
}  // namespace rondo::testing

#include "base/value.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace rondo {
namespace {

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Value, JsonReadsBackTheSame) {
  const Value value = parse_json(R"({"b":1,"a":[true,null,"x",0.1],"c":{"d":-3}})", "t");
  EXPECT_EQ(to_json(value), R"({"b":1,"a":[true,null,"x",0.1],"c":{"d":-3}})");
}

TEST(Value, JsonRefusesAKeyThatStandsTwice) {
  EXPECT_EQ(message_of([] { parse_json(R"({"a":1,"a":2})", "m.json"); }),
            "m.json: key \"a\" stands twice in one object");
  // On one line, whatever the key is.
  EXPECT_EQ(message_of([] { parse_json(R"({"a\nb":1,"a\nb":2})", "m.json"); }),
            "m.json: key \"a\\nb\" stands twice in one object");
}

TEST(Value, JsonSaysWhereItBreaks) {
  EXPECT_EQ(message_of([] { parse_json("{\"a\":}", "m.json"); }).substr(0, 27),
            "m.json: not JSON at byte 6:");
  EXPECT_NE(message_of([] { parse_json(std::string(100, '['), "m"); }).find("nested"),
            std::string::npos);
}

TEST(Value, TomlKeepsOrderAndReadsBackTheSame) {
  const Value value = parse_toml("[b]\ny = 1\nx = 0.1\n[a]\nz = ['p', 'q']\n", "t");
  EXPECT_EQ(value.as_object()->at(0).first, "b");
  const Value again = parse_toml(to_toml(value), "t");
  EXPECT_EQ(*again.find("b")->find("x"), Value(0.1));
  EXPECT_EQ(*again.find("a"), *value.find("a"));
}

TEST(Value, TomlSaysLineAndColumn) {
  EXPECT_EQ(message_of([] { parse_toml("a = 1\nb = = 2\n", "c.toml"); }).substr(0, 22),
            "c.toml: line 2, column");
}

TEST(Reader, RefusesUnknownKeysAndSuggestsTheNearest) {
  const Value value = parse_toml("[train]\nstpes = 3\n", "c.toml");
  Reader reader(value, "c.toml");
  Reader train = reader.section("train");
  EXPECT_EQ(train.integer("steps", 5, 1, 100), 5);
  EXPECT_EQ(message_of([&] { train.finish(); }),
            "c.toml: train.stpes is not a known key; did you mean train.steps?");
}

TEST(Reader, ChecksTypesAndRanges) {
  const Value value = parse_toml("a = 'x'\nb = 200\nc = nan\n", "c.toml");
  Reader reader(value, "c.toml");
  EXPECT_EQ(message_of([&] { reader.integer("a", {}, 0, 1); }),
            "c.toml: a is a string; it must be an integer");
  EXPECT_EQ(message_of([&] { reader.integer("b", {}, 0, 100); }),
            "c.toml: b is 200; it must lie between 0 and 100");
  EXPECT_EQ(message_of([&] { reader.number("c", {}, 0, 1); }),
            "c.toml: c is nan; it must lie between 0 and 1");
  EXPECT_EQ(message_of([&] { reader.integer("d", {}, 0, 1); }),
            "c.toml: d is missing; it has no default");
}

TEST(Reader, ValueAfterSetIsTomlOrABareWord) {
  EXPECT_EQ(parse_toml_value("3"), Value(3));
  EXPECT_EQ(parse_toml_value("emu:64MiB"), Value("emu:64MiB"));
  EXPECT_EQ(parse_toml_value("'3'"), Value("3"));
  EXPECT_EQ(parse_toml_value("1\nb = 2"), Value("1\nb = 2"));
}

}  // namespace
}  // namespace rondo

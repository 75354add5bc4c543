// One tree for JSON and TOML, and a reader that refuses what it does not know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rondo {

// null, bool, int64, double, string, array, or object (keys in the order of the text, no key
// twice).
class Value {
 public:
  using Array = std::vector<Value>;
  using Object = std::vector<std::pair<std::string, Value>>;

  Value() = default;
  Value(bool v) : data_(v) {}
  Value(int v) : data_(static_cast<int64_t>(v)) {}
  Value(int64_t v) : data_(v) {}
  Value(double v) : data_(v) {}
  Value(const char* v) : data_(std::string(v)) {}
  Value(std::string v) : data_(std::move(v)) {}
  Value(Array v) : data_(std::move(v)) {}
  Value(Object v) : data_(std::move(v)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  const bool* as_bool() const { return std::get_if<bool>(&data_); }
  const int64_t* as_int() const { return std::get_if<int64_t>(&data_); }
  const double* as_double() const { return std::get_if<double>(&data_); }
  const std::string* as_string() const { return std::get_if<std::string>(&data_); }
  const Array* as_array() const { return std::get_if<Array>(&data_); }
  Array* as_array() { return std::get_if<Array>(&data_); }
  const Object* as_object() const { return std::get_if<Object>(&data_); }
  Object* as_object() { return std::get_if<Object>(&data_); }
  const char* kind() const;  // "a string", "an integer", ...: for messages

  const Value* find(std::string_view key) const;  // nullptr unless an object that has it
  void set(std::string_view key, Value value);    // of an object (a null becomes one): new or over
  void erase(std::string_view key);
  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> data_;
};

// InputError with `source`, line and column on bad text or a key that stands twice. Numbers that do
// not fit int64 become double. JSON: NaN and Infinity are refused.
Value parse_json(std::string_view text, const std::string& source);
Value parse_toml(std::string_view text, const std::string& source);
// `indent` < 0: one line. Doubles are written so that they read back as the same bits.
std::string to_json(const Value& value, int indent = -1);
std::string to_toml(const Value& object);

// One value as it stands after `--set key=`: what TOML reads, else the text as a string.
Value parse_toml_value(std::string_view text);

// The candidate with the least edit distance when it is near enough to be a slip, else "".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Reads an object key by key; every message begins "SOURCE: SECTION.KEY". Ranges are inclusive.
// Keep the Value alive while this lives.
class Reader {
 public:
  Reader(const Value& object, std::string source, std::string path = "");

  bool has(std::string_view key);  // there and not null
  int64_t integer(std::string_view key, std::optional<int64_t> otherwise, int64_t low,
                  int64_t high);
  double number(std::string_view key, std::optional<double> otherwise, double low, double high);
  bool boolean(std::string_view key, std::optional<bool> otherwise);
  std::string text(std::string_view key, std::optional<std::string> otherwise);
  // One of `choices`; a message lists them.
  std::string choice(std::string_view key, std::optional<std::string> otherwise,
                     const std::vector<std::string>& choices);
  std::vector<std::string> texts(std::string_view key);  // a string counts as one; absent: empty
  std::vector<double> numbers(std::string_view key);     // absent: empty
  Reader section(std::string_view key);                  // an object; absent or null: empty
  const Value* raw(std::string_view key);                // marks it known; nullptr when absent
  void ignore(std::string_view key) { known(key); }

  // Every key that was not asked for is refused; the nearest of those asked for is suggested.
  void finish() const;
  // An InputError about this key: "SOURCE: SECTION.KEY MESSAGE".
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  const std::string& source() const { return source_; }
  std::vector<std::string> unknown_keys() const;

 private:
  const Value* known(std::string_view key);
  const Value* required(std::string_view key, bool has_default);
  std::string where(std::string_view key) const;
  const Value* object_;
  std::string source_, path_;
  std::vector<std::string> known_;
};

}  // namespace rondo

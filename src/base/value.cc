#include "base/value.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace rondo {

const char* Value::kind() const {
  static constexpr const char* kNames[] = {"null",     "a boolean", "an integer", "a number",
                                           "a string", "an array",  "a table"};
  return kNames[data_.index()];
}

const Value* Value::find(std::string_view key) const {
  if (const Object* object = as_object())
    for (const auto& [name, value] : *object)
      if (name == key) return &value;
  return nullptr;
}

void Value::set(std::string_view key, Value value) {
  if (is_null()) data_ = Object{};
  Object* object = as_object();
  RONDO_CHECK(object, "set({}) on {}", key, kind());
  for (auto& [name, old] : *object)
    if (name == key) {
      old = std::move(value);
      return;
    }
  object->emplace_back(std::string(key), std::move(value));
}

void Value::erase(std::string_view key) {
  if (Object* object = as_object()) std::erase_if(*object, [&](auto& e) { return e.first == key; });
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t change = diagonal + (word[i - 1] != candidate[j - 1]);
        diagonal = row[j];
        row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

Reader::Reader(const Value& object, std::string source, std::string path)
    : object_(&object), source_(std::move(source)), path_(std::move(path)) {
  if (!object.is_null() && !object.as_object())
    fail_input("{}: {} is {}; it must be a table", source_, path_.empty() ? "the file" : path_,
               object.kind());
}

std::string Reader::where(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void Reader::fail(std::string_view key, const std::string& message) const {
  fail_input("{}: {} {}", source_, where(key), message);
}

const Value* Reader::known(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return object_->find(key);
}

const Value* Reader::raw(std::string_view key) {
  return known(key);
}

bool Reader::has(std::string_view key) {
  const Value* value = known(key);
  return value && !value->is_null();
}

const Value* Reader::required(std::string_view key, bool has_default) {
  const Value* value = known(key);
  if (value && value->is_null()) value = nullptr;
  if (!value && !has_default) fail(key, "is missing; it has no default");
  return value;
}

int64_t Reader::integer(std::string_view key, std::optional<int64_t> otherwise, int64_t low,
                        int64_t high) {
  const Value* value = required(key, otherwise.has_value());
  if (!value) return *otherwise;
  const int64_t* number = value->as_int();
  int64_t rounded = 0;
  if (const double* d = value->as_double(); d && *d == std::floor(*d) && std::abs(*d) < 0x1p62) {
    rounded = static_cast<int64_t>(*d);
    number = &rounded;
  }
  if (!number) fail(key, fmt::format("is {}; it must be an integer", value->kind()));
  if (*number < low || *number > high)
    fail(key, high == INT64_MAX
                  ? fmt::format("is {}; it must be at least {}", *number, low)
                  : fmt::format("is {}; it must lie between {} and {}", *number, low, high));
  return *number;
}

double Reader::number(std::string_view key, std::optional<double> otherwise, double low,
                      double high) {
  const Value* value = required(key, otherwise.has_value());
  if (!value) return *otherwise;
  double number;
  if (const double* d = value->as_double())
    number = *d;
  else if (const int64_t* i = value->as_int())
    number = static_cast<double>(*i);
  else
    fail(key, fmt::format("is {}; it must be a number", value->kind()));
  if (!(number >= low && number <= high))
    fail(key, fmt::format("is {}; it must lie between {} and {}", number, low, high));
  return number;
}

bool Reader::boolean(std::string_view key, std::optional<bool> otherwise) {
  const Value* value = required(key, otherwise.has_value());
  if (!value) return *otherwise;
  if (!value->as_bool()) fail(key, fmt::format("is {}; it must be true or false", value->kind()));
  return *value->as_bool();
}

std::string Reader::text(std::string_view key, std::optional<std::string> otherwise) {
  const Value* value = required(key, otherwise.has_value());
  if (!value) return *otherwise;
  if (!value->as_string()) fail(key, fmt::format("is {}; it must be a string", value->kind()));
  return *value->as_string();
}

std::string Reader::choice(std::string_view key, std::optional<std::string> otherwise,
                           const std::vector<std::string>& choices) {
  std::string word = text(key, std::move(otherwise));
  if (std::find(choices.begin(), choices.end(), word) == choices.end())
    fail(key, fmt::format("is \"{}\"; it must be one of {}", word, fmt::join(choices, ", ")));
  return word;
}

std::vector<std::string> Reader::texts(std::string_view key) {
  const Value* value = required(key, true);
  if (!value) return {};
  if (value->as_string()) return {*value->as_string()};
  const Value::Array* array = value->as_array();
  if (!array) fail(key, fmt::format("is {}; it must be an array of strings", value->kind()));
  std::vector<std::string> out;
  for (const Value& item : *array) {
    if (!item.as_string())
      fail(key, fmt::format("holds {}; it must be an array of strings", item.kind()));
    out.push_back(*item.as_string());
  }
  return out;
}

std::vector<double> Reader::numbers(std::string_view key) {
  const Value* value = required(key, true);
  if (!value) return {};
  const Value::Array* array = value->as_array();
  if (!array) fail(key, fmt::format("is {}; it must be an array of numbers", value->kind()));
  std::vector<double> out;
  for (const Value& item : *array) {
    if (item.as_double())
      out.push_back(*item.as_double());
    else if (item.as_int())
      out.push_back(static_cast<double>(*item.as_int()));
    else
      fail(key, fmt::format("holds {}; it must be an array of numbers", item.kind()));
  }
  return out;
}

Reader Reader::section(std::string_view key) {
  static const Value kEmpty;
  const Value* value = known(key);
  return Reader(value ? *value : kEmpty, source_, where(key));
}

std::vector<std::string> Reader::unknown_keys() const {
  std::vector<std::string> out;
  if (const Value::Object* object = object_->as_object())
    for (const auto& [key, value] : *object)
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) out.push_back(key);
  return out;
}

void Reader::finish() const {
  const std::vector<std::string> unknown = unknown_keys();
  if (unknown.empty()) return;
  const std::string near = nearest(unknown[0], known_);
  if (near.empty())
    fail_input("{}: {} is not a known key; known here: {}", source_, where(unknown[0]),
               fmt::join(known_, ", "));
  fail_input("{}: {} is not a known key; did you mean {}?", source_, where(unknown[0]),
             where(near));
}

}  // namespace rondo

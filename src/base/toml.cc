// The only file that includes toml++: it compiles slowly.
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/value.h"

namespace rondo {
namespace {

Value convert(const toml::node& node, const std::string& source) {
  if (const auto* v = node.as_boolean()) return v->get();
  if (const auto* v = node.as_integer()) return v->get();
  if (const auto* v = node.as_floating_point()) return v->get();
  if (const auto* v = node.as_string()) return v->get();
  if (const auto* array = node.as_array()) {
    Value::Array out;
    for (const toml::node& item : *array) out.push_back(convert(item, source));
    return out;
  }
  if (const auto* table = node.as_table()) {
    // toml++ sorts keys; the text's order is kept by the position of each key.
    std::vector<std::pair<toml::source_position, std::pair<std::string, const toml::node*>>> order;
    for (const auto& [key, item] : *table)
      order.push_back({key.source().begin, {std::string(key.str()), &item}});
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Value::Object out;
    for (const auto& [position, entry] : order)
      out.emplace_back(entry.first, convert(*entry.second, source));
    return out;
  }
  fail_input("{}: line {}: dates and times are not used here", source, node.source().begin.line);
}

void insert(toml::table& table, const std::string& key, const Value& value);

void append(toml::array& array, const Value& value) {
  if (const bool* v = value.as_bool())
    array.push_back(*v);
  else if (const int64_t* v = value.as_int())
    array.push_back(*v);
  else if (const double* v = value.as_double())
    array.push_back(*v);
  else if (const std::string* v = value.as_string())
    array.push_back(*v);
  else if (const Value::Array* v = value.as_array()) {
    toml::array inner;
    for (const Value& item : *v) append(inner, item);
    array.push_back(std::move(inner));
  } else if (const Value::Object* v = value.as_object()) {
    toml::table inner;
    for (const auto& [key, item] : *v) insert(inner, key, item);
    array.push_back(std::move(inner));
  }
}

void insert(toml::table& table, const std::string& key, const Value& value) {
  if (const bool* v = value.as_bool())
    table.insert(key, *v);
  else if (const int64_t* v = value.as_int())
    table.insert(key, *v);
  else if (const double* v = value.as_double())
    table.insert(key, *v);
  else if (const std::string* v = value.as_string())
    table.insert(key, *v);
  else if (const Value::Array* v = value.as_array()) {
    toml::array array;
    for (const Value& item : *v) append(array, item);
    table.insert(key, std::move(array));
  } else if (const Value::Object* v = value.as_object()) {
    toml::table inner;
    for (const auto& [name, item] : *v) insert(inner, name, item);
    table.insert(key, std::move(inner));
  }  // TOML has no null: a key without a value is left out
}

}  // namespace

Value parse_toml(std::string_view text, const std::string& source) {
  try {
    const toml::table table = toml::parse(text);
    return convert(table, source);
  } catch (const toml::parse_error& error) {
    fail_input("{}: line {}, column {}: {}", source, error.source().begin.line,
               error.source().begin.column, error.description());
  }
}

std::string to_toml(const Value& object) {
  toml::table table;
  RONDO_CHECK(object.as_object(), "to_toml of {}", object.kind());
  for (const auto& [key, value] : *object.as_object()) insert(table, key, value);
  std::ostringstream out;
  out << table << '\n';
  return out.str();
}

Value parse_toml_value(std::string_view text) {
  try {
    const toml::table table = toml::parse("v = " + std::string(text));
    if (table.size() == 1) return convert(*table.get("v"), "--set");
  } catch (const toml::parse_error&) {
    // not TOML: a bare word
  }
  return std::string(text);
}

}  // namespace rondo

// The only file that includes nlohmann-json: it compiles slowly.
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/value.h"

namespace rondo {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 64;

// Builds a Value; refuses a key that stands twice in one object, which a DOM parser would hide.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string source) : source_(std::move(source)) {}
  Value take() { return std::move(root_); }

  bool null() override { return add(Value()); }
  bool boolean(bool v) override { return add(v); }
  bool number_integer(int64_t v) override { return add(v); }
  bool number_unsigned(uint64_t v) override {
    if (v <= INT64_MAX) return add(static_cast<int64_t>(v));
    return add(static_cast<double>(v));
  }
  bool number_float(double v, const std::string&) override { return add(v); }
  bool string(std::string& v) override { return add(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Value(Value::Object{})); }
  bool start_array(size_t) override { return open(Value(Value::Array{})); }
  bool key(std::string& name) override {
    if (!seen_.back().insert(name).second)
      fail_input("{}: key {} stands twice in one object", source_, Json(name).dump());
    keys_.back() = name;
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    std::string reason = error.what();
    if (const size_t bracket = reason.find("] "); bracket != std::string::npos)
      reason = reason.substr(bracket + 2);
    fail_input("{}: not JSON at byte {}: {}", source_, position, reason);
  }

 private:
  bool open(Value container) {
    if (open_.size() >= kMaxDepth) fail_input("{}: nested deeper than {}", source_, kMaxDepth);
    open_.push_back(std::move(container));
    keys_.emplace_back();
    seen_.emplace_back();
    return true;
  }
  bool close() {
    Value done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    seen_.pop_back();
    return add(std::move(done));
  }
  bool add(Value value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (Value::Array* array = open_.back().as_array())
      array->push_back(std::move(value));
    else
      open_.back().as_object()->emplace_back(keys_.back(), std::move(value));
    return true;
  }

  std::string source_;
  Value root_;
  std::vector<Value> open_;
  std::vector<std::string> keys_;
  std::vector<std::unordered_set<std::string>> seen_;  // keys of each; a file may have a million
};

nlohmann::ordered_json convert(const Value& value) {
  if (const bool* v = value.as_bool()) return *v;
  if (const int64_t* v = value.as_int()) return *v;
  if (const double* v = value.as_double()) return *v;
  if (const std::string* v = value.as_string()) return *v;
  if (const Value::Array* array = value.as_array()) {
    auto out = nlohmann::ordered_json::array();
    for (const Value& item : *array) out.push_back(convert(item));
    return out;
  }
  if (const Value::Object* object = value.as_object()) {
    auto out = nlohmann::ordered_json::object();
    // Appended without looking for the key, which is in there once and would cost a scan each time.
    auto& entries = out.get_ref<nlohmann::ordered_json::object_t&>();
    for (const auto& [key, item] : *object) entries.emplace_back(key, convert(item));
    return out;
  }
  return nullptr;
}

}  // namespace

Value parse_json(std::string_view text, const std::string& source) {
  Builder builder(source);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) fail_input("{}: not JSON", source);
  return builder.take();
}

std::string to_json(const Value& value, int indent) {
  // Bytes that are not UTF-8 are replaced: a log line must not end a run.
  return convert(value).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace rondo

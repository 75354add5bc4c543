// The safetensors format: 8 bytes of header length (little-endian), a JSON header, the data.
#include <cstring>
#include <set>

#include "base/error.h"
#include "model/hub.h"

namespace rondo {
namespace {

constexpr uint64_t kMostHeader = 100'000'000;  // bytes, as the format's own library allows

uint64_t as_size(const Value* v, const std::string& where) {
  const int64_t* n = v ? v->as_int() : nullptr;
  if (!n || *n < 0) fail_input("{} wants integers that are not negative", where);
  return static_cast<uint64_t>(*n);
}

SafetensorsFile::Entry read_entry(const Value& value, const std::string& where,
                                  const std::byte* data, uint64_t data_bytes, uint64_t& begin,
                                  uint64_t& end) {
  const Value* dtype = value.find("dtype");
  const Value* shape = value.find("shape");
  const Value* offsets = value.find("data_offsets");
  if (!dtype || !dtype->as_string() || !shape || !shape->as_array() || !offsets ||
      !offsets->as_array() || offsets->as_array()->size() != 2)
    fail_input("{} lacks dtype, shape or two data_offsets", where);
  const auto type = dtype_from_hub_name(*dtype->as_string());
  if (!type) fail_input("{} has dtype {}, which is not supported", where, *dtype->as_string());
  SafetensorsFile::Entry entry{*type, {}, nullptr, 0};
  unsigned __int128 bytes = size_of(*type);
  for (const Value& d : *shape->as_array()) {
    const uint64_t n = as_size(&d, where + ": shape");
    bytes *= n;
    if (bytes > (uint64_t{1} << 62)) fail_input("{}: the shape is larger than any file", where);
    entry.shape.push_back(static_cast<int64_t>(n));
  }
  begin = as_size(&(*offsets->as_array())[0], where + ": data_offsets");
  end = as_size(&(*offsets->as_array())[1], where + ": data_offsets");
  if (begin > end || end > data_bytes)
    fail_input("{}: data_offsets [{}, {}] lie outside the {} bytes of data", where, begin, end,
               data_bytes);
  if (end - begin != static_cast<uint64_t>(bytes))
    fail_input("{}: {} bytes of data for a shape of {}", where, end - begin,
               static_cast<uint64_t>(bytes));
  entry.data = data + begin;
  entry.bytes = static_cast<int64_t>(bytes);
  return entry;
}

}  // namespace

SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), file_(std::make_unique<MappedFile>(path)) {
  const auto bytes = file_->bytes();
  uint64_t header = 0;
  if (bytes.size() < 8) fail_input("{}: {} bytes are no safetensors file", path, bytes.size());
  std::memcpy(&header, bytes.data(), 8);
  if (header > kMostHeader)
    fail_input("{}: a header of {} bytes; at most {} are allowed", path, header, kMostHeader);
  if (header > bytes.size() - 8)
    fail_input("{}: a header of {} bytes in a file of {}", path, header, bytes.size());
  const Value json =
      parse_json({reinterpret_cast<const char*>(bytes.data()) + 8, header}, path + ": header");
  if (!json.as_object()) fail_input("{}: the header is no object", path);
  const std::byte* data = bytes.data() + 8 + header;
  const uint64_t data_bytes = bytes.size() - 8 - header;
  std::map<std::pair<uint64_t, uint64_t>, std::string> ranges;
  for (const auto& [name, value] : *json.as_object()) {
    if (name == "__metadata__") {
      if (!value.as_object()) fail_input("{}: __metadata__ is no object", path);
      for (const auto& [key, text] : *value.as_object()) {
        if (!text.as_string()) fail_input("{}: __metadata__.{} is no string", path, key);
        metadata_[key] = *text.as_string();
      }
      continue;
    }
    uint64_t begin = 0, end = 0;
    const std::string where = path + ": tensor " + name;
    tensors_[name] = read_entry(value, where, data, data_bytes, begin, end);
    if (begin == end) continue;
    if (!ranges.emplace(std::make_pair(begin, end), name).second)
      fail_input("{} lies where {} lies", where, ranges[{begin, end}]);
  }
  uint64_t at = 0;
  for (const auto& [range, name] : ranges) {
    if (range.first < at) fail_input("{}: tensor {} overlaps the one before it", path, name);
    if (range.first > at)
      fail_input("{}: {} bytes before tensor {} belong to none", path, range.first - at, name);
    at = range.second;
  }
  if (at != data_bytes)
    fail_input("{}: {} bytes behind the last tensor belong to none", path, data_bytes - at);
}

void write_safetensors(const std::string& path, const std::vector<SafetensorsItem>& items,
                       const std::map<std::string, std::string>& metadata) {
  Value::Object header;
  if (!metadata.empty()) {
    Value::Object texts;
    for (const auto& [key, text] : metadata) texts.emplace_back(key, text);
    header.emplace_back("__metadata__", std::move(texts));
  }
  int64_t at = 0;
  std::vector<int64_t> sizes;
  for (const SafetensorsItem& item : items) {
    Value::Array shape;
    int64_t n = static_cast<int64_t>(size_of(item.dtype));
    for (const int64_t d : item.shape) {
      shape.emplace_back(d);
      n *= d;
    }
    sizes.push_back(n);
    Value::Object entry;
    entry.emplace_back("dtype", hub_name_of(item.dtype));
    entry.emplace_back("shape", std::move(shape));
    entry.emplace_back("data_offsets", Value::Array{at, at + n});
    header.emplace_back(item.name, std::move(entry));
    at += n;
  }
  std::string text = to_json(Value(std::move(header)));
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins aligned
  const uint64_t length = text.size();
  FileWriter file(path);
  file.write({reinterpret_cast<const std::byte*>(&length), 8});
  file.write({reinterpret_cast<const std::byte*>(text.data()), text.size()});
  std::vector<std::byte> buffer;
  for (size_t i = 0; i < items.size(); ++i) {
    buffer.resize(static_cast<size_t>(sizes[i]));
    items[i].fill(buffer.data());
    file.write(buffer);
  }
  file.close();
}

}  // namespace rondo

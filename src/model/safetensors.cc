#include "model/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "base/value.h"

namespace rondo {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr uint64_t kMaxHeader = 100'000'000;  // bytes; the limit of the format's own library
constexpr size_t kMaxDims = 8;
constexpr const char* kMetadata = "__metadata__";

// A name from the file, on one line whatever is in it.
std::string quote(const std::string& name) {
  return to_json(Value(name));
}

struct Region {
  int64_t begin, end;  // bytes
  const std::string* name;
};

// What the header says of one tensor, checked against itself.
class EntryReader {
 public:
  EntryReader(const std::string& path, const std::string& name, const Value& value)
      : path_(path), name_(name), value_(value) {
    if (!value.as_object()) fail("is {}; it must be an object", value.kind());
    for (const auto& [key, item] : *value.as_object())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail("has a key {}; only dtype, shape and data_offsets are known", quote(key));
  }

  DType dtype() const {
    const std::string* name = get("dtype").as_string();
    if (!name) fail("has a dtype that is no string");
    const std::optional<DType> dtype = dtype_from_hub_name(*name);
    if (!dtype) fail("has dtype {}, which is not supported", quote(*name));
    return *dtype;
  }

  std::vector<int64_t> integers(const char* key) const {
    const Value::Array* array = get(key).as_array();
    if (!array) fail("has a {} that is no array", key);
    std::vector<int64_t> out;
    for (const Value& item : *array) {
      if (!item.as_int() || *item.as_int() < 0)
        fail("has {} in {}; only integers from 0 to 2^63 - 1 may stand there", to_json(item), key);
      out.push_back(*item.as_int());
    }
    return out;
  }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_input("{}: tensor {} {}", path_, quote(name_),
               fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const Value& get(const char* key) const {
    const Value* found = value_.find(key);
    if (!found) fail("has no {}", key);
    return *found;
  }

  const std::string& path_;
  const std::string& name_;
  const Value& value_;
};

int64_t bytes_of(const EntryReader& reader, DType dtype, const std::vector<int64_t>& shape) {
  if (shape.size() > kMaxDims)
    reader.fail("has {} dimensions; at most {} are accepted", shape.size(), kMaxDims);
  int64_t bytes = static_cast<int64_t>(size_of(dtype));
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      reader.fail("has shape [{}], which is more than memory can hold", fmt::join(shape, ", "));
  return bytes;
}

std::map<std::string, std::string> read_metadata(const std::string& path, const Value& value) {
  std::map<std::string, std::string> out;
  if (!value.as_object())
    fail_input("{}: {} is {}; it must be an object", path, kMetadata, value.kind());
  for (const auto& [key, item] : *value.as_object()) {
    if (!item.as_string())
      fail_input("{}: {} holds {} under {}; it must be a string", path, kMetadata, item.kind(),
                 quote(key));
    out.emplace(key, *item.as_string());
  }
  return out;
}

// Tensors must cover the data exactly.
void check_cover(const std::string& path, std::vector<Region> regions, int64_t size) {
  std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const Region* before = nullptr;
  int64_t covered = 0;
  for (const Region& region : regions) {
    if (region.begin < covered)
      fail_input("{}: tensor {} begins at byte {} of the data, inside tensor {}, which ends at {}",
                 path, quote(*region.name), region.begin, quote(*before->name), covered);
    if (region.begin > covered)
      fail_input("{}: bytes {} to {} of the data belong to no tensor", path, covered, region.begin);
    covered = region.end;
    before = &region;
  }
  if (covered < size)
    fail_input("{}: bytes {} to {} of the data belong to no tensor", path, covered, size);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), file_(std::make_unique<MappedFile>(path)) {
  const std::span<const std::byte> bytes = file_->bytes();
  uint64_t length = 0;
  if (bytes.size() < sizeof(length))
    fail_input("{}: has {} bytes; a safetensors file begins with 8 that give its header's length",
               path, bytes.size());
  std::copy_n(bytes.data(), sizeof(length), reinterpret_cast<std::byte*>(&length));
  if (length > kMaxHeader)
    fail_input("{}: the header's length is {}; it must be at most {} (is it a safetensors file?)",
               path, length, kMaxHeader);
  const uint64_t after = bytes.size() - sizeof(length);
  if (length > after)
    fail_input("{}: the header's length is {}; only {} bytes follow", path, length, after);

  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof(length), length);
  const std::byte* const data = bytes.data() + sizeof(length) + length;
  const int64_t size = static_cast<int64_t>(after - length);
  const Value header = parse_json(text, path);
  if (!header.as_object())
    fail_input("{}: the header is {}; it must be an object", path, header.kind());
  std::vector<Region> regions;
  for (const auto& [name, value] : *header.as_object()) {
    if (name == kMetadata) {
      metadata_ = read_metadata(path, value);
      continue;
    }
    const EntryReader reader(path, name, value);
    const DType dtype = reader.dtype();
    std::vector<int64_t> shape = reader.integers("shape");
    const std::vector<int64_t> offsets = reader.integers("data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1])
      reader.fail("has data_offsets [{}]; they must be [begin, end]", fmt::join(offsets, ", "));
    if (offsets[1] > size)
      reader.fail("ends at byte {} of the data, which has {}", offsets[1], size);
    const int64_t needed = bytes_of(reader, dtype, shape);
    if (offsets[1] - offsets[0] != needed)
      reader.fail("has {} bytes; {} [{}] needs {}", offsets[1] - offsets[0], hub_name_of(dtype),
                  fmt::join(shape, ", "), needed);
    regions.push_back({offsets[0], offsets[1], &name});
    tensors_.emplace(name, Entry{dtype, std::move(shape), data + offsets[0], needed});
  }
  check_cover(path, std::move(regions), size);
}

void write_safetensors(const std::string& path, const std::vector<SafetensorsItem>& items,
                       const std::map<std::string, std::string>& metadata) {
  Value::Object header;
  if (!metadata.empty()) {
    Value::Object object;
    for (const auto& [key, text] : metadata) object.emplace_back(key, text);
    header.emplace_back(kMetadata, std::move(object));
  }
  int64_t begin = 0;
  std::vector<int64_t> sizes;
  for (const SafetensorsItem& item : items) {
    int64_t bytes = static_cast<int64_t>(size_of(item.dtype));
    for (const int64_t size : item.shape) bytes *= size;
    sizes.push_back(bytes);
    Value::Object entry;
    entry.emplace_back("dtype", hub_name_of(item.dtype));
    entry.emplace_back("shape", Value::Array(item.shape.begin(), item.shape.end()));
    entry.emplace_back("data_offsets", Value::Array{begin, begin + bytes});
    header.emplace_back(item.name, std::move(entry));
    begin += bytes;
  }
  std::string text = to_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned in a mapped file
  RONDO_CHECK(text.size() <= kMaxHeader, "{}: a header of {} bytes", path, text.size());

  const fs::path temporary = path + ".tmp";
  try {
    FileWriter writer(temporary);
    const uint64_t length = text.size();
    writer.write(std::as_bytes(std::span(&length, 1)));
    writer.write(text);
    std::vector<std::byte> buffer;
    for (size_t i = 0; i < items.size(); ++i) {
      buffer.resize(static_cast<size_t>(sizes[i]));
      items[i].fill(buffer.data());
      writer.write(std::span<const std::byte>(buffer));
    }
    writer.close();
    std::error_code error;
    fs::rename(temporary, path, error);
    if (error) fail_input("{}: cannot rename: {}", temporary.string(), error.message());
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

}  // namespace rondo

#include "model/hub.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "base/value.h"

namespace rondo {
namespace {

using Entry = SafetensorsFile::Entry;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// The file of each tensor, as the index tells.
std::map<std::string, std::string> read_weight_map(const std::string& path) {
  const Value json = parse_json(read_file(path), path);
  const Value* weight_map = json.find("weight_map");
  if (!weight_map || !weight_map->as_object())
    fail_input("{}: has no weight_map, an object that gives each tensor its file", path);
  std::map<std::string, std::string> out;
  for (const auto& [tensor, file] : *weight_map->as_object()) {
    const std::string* name = file.as_string();
    if (!name || name->empty() || *name == "." || *name == ".." ||
        name->find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      fail_input("{}: weight_map gives tensor {} the file {}; it must be the name of a file beside",
                 path, to_json(tensor), to_json(file));
    out.emplace(tensor, *name);
  }
  return out;
}

void convert_to_float(const Entry& entry, int64_t elements, float* out) {
  const auto each = [&](auto element) {
    for (int64_t i = 0; i < elements; ++i) {
      std::memcpy(&element, entry.data + i * static_cast<int64_t>(sizeof(element)),
                  sizeof(element));
      out[i] = to_float(element);
    }
  };
  switch (entry.dtype) {
    case DType::kF32:
      std::memcpy(out, entry.data, static_cast<size_t>(entry.bytes));
      break;
    case DType::kBF16:
      each(BF16{});
      break;
    case DType::kF16:
      each(F16{});
      break;
    default:
      RONDO_CHECK(false, "weights in {}", name_of(entry.dtype));
  }
}

void convert_from_float(const float* values, int64_t elements, DType dtype, std::byte* out) {
  const auto each = [&](auto convert) {
    for (int64_t i = 0; i < elements; ++i) {
      const auto element = convert(values[i]);
      std::memcpy(out + i * static_cast<int64_t>(sizeof(element)), &element, sizeof(element));
    }
  };
  switch (dtype) {
    case DType::kF32:
      std::memcpy(out, values, static_cast<size_t>(elements) * sizeof(float));
      break;
    case DType::kBF16:
      each(to_bf16);
      break;
    case DType::kF16:
      each(to_f16);
      break;
    default:
      RONDO_CHECK(false, "weights as {}", name_of(dtype));
  }
}

bool in_mtp_layer(const std::string& name, const ModelConfig& config) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!name.starts_with(kPrefix)) return false;
  int64_t layer = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  return layer >= config.num_hidden_layers;
}

void check_entry(const Parameter& row, const Entry& entry, const std::string& folder) {
  if (entry.shape != row.shape)
    fail_input("{}: tensor {} has shape [{}]; it must be [{}]", folder, row.name,
               fmt::join(entry.shape, ", "), fmt::join(row.shape, ", "));
  if (entry.dtype != DType::kF32 && entry.dtype != DType::kBF16 && entry.dtype != DType::kF16)
    fail_input("{}: tensor {} is {}; it must be F32, BF16 or F16", folder, row.name,
               hub_name_of(entry.dtype));
}

// What transformers is to load the weights as.
void set_dtype(Value& json, DType dtype) {
  const char* name = dtype == DType::kF32    ? "float32"
                     : dtype == DType::kBF16 ? "bfloat16"
                                             : "float16";
  json.set(json.find("dtype") ? "dtype" : "torch_dtype", name);
  if (json.find("dtype")) json.erase("torch_dtype");
}

}  // namespace

HubFolder::HubFolder(const std::string& folder) {
  const fs::path base = folder;
  if (fs::exists(base / kWeights)) {
    files_.push_back(std::make_unique<SafetensorsFile>((base / kWeights).string()));
    tensors_ = files_.back()->tensors();
    return;
  }
  if (!fs::exists(base / kIndex))
    fail_input("{}: holds neither {} nor {}", folder, kWeights, kIndex);
  const std::map<std::string, std::string> weight_map = read_weight_map((base / kIndex).string());
  std::map<std::string, const SafetensorsFile*> shards;
  for (const auto& [tensor, file] : weight_map) {
    const SafetensorsFile*& shard = shards[file];
    if (!shard) {
      files_.push_back(std::make_unique<SafetensorsFile>((base / file).string()));
      shard = files_.back().get();
    }
    const auto found = shard->tensors().find(tensor);
    if (found == shard->tensors().end())
      fail_input("{}: has no tensor {}, which {} says it has", shard->path(), to_json(tensor),
                 kIndex);
    tensors_.emplace(tensor, found->second);
  }
  for (const auto& [file, shard] : shards)
    for (const auto& [tensor, entry] : shard->tensors())
      if (const auto found = weight_map.find(tensor);
          found == weight_map.end() || found->second != file)
        fail_input("{}: has tensor {}, which {} {}", shard->path(), to_json(tensor), kIndex,
                   found == weight_map.end() ? "does not name"
                                             : fmt::format("says is in {}", found->second));
}

std::vector<float> load_weights(const ParameterTable& table, const ModelConfig& config,
                                const std::string& folder, const std::vector<float>* missing_mtp) {
  const HubFolder hub(folder);
  std::vector<float> flat(static_cast<size_t>(table.flat_elements()), 0.f);
  RONDO_CHECK(!missing_mtp || missing_mtp->size() == flat.size(), "{} for {} elements",
              missing_mtp->size(), flat.size());
  std::unordered_map<int64_t, const Parameter*> first_at;  // by offset: what an alias copies
  std::vector<float> copy;
  for (const Parameter& row : table.rows()) {
    const int64_t elements = row.elements();
    float* values = flat.data() + row.offset;
    if (!row.alias) first_at.emplace(row.offset, &row);
    const auto found = hub.tensors().find(row.name);
    if (found == hub.tensors().end()) {
      if (row.alias) continue;
      const bool mtp = in_mtp_layer(row.name, config);
      if (!mtp || !missing_mtp)
        fail_input("{}: tensor {} is missing; it must be there with shape [{}]{}", folder, row.name,
                   fmt::join(row.shape, ", "),
                   mtp ? " (init_missing = \"mtp\" begins with a new MTP layer)" : "");
      std::copy_n(missing_mtp->data() + row.offset, elements, values);
      continue;
    }
    const Entry& entry = found->second;
    check_entry(row, entry, folder);
    if (!row.alias) {
      convert_to_float(entry, elements, values);
      continue;
    }
    copy.resize(static_cast<size_t>(elements));
    convert_to_float(entry, elements, copy.data());
    if (std::memcmp(copy.data(), values, copy.size() * sizeof(float)) != 0)
      fail_input("{}: tensor {} differs from {}; it must be a copy of it", folder, row.name,
                 first_at.at(row.offset)->name);
  }
  for (const auto& [name, entry] : hub.tensors())
    if (!table.find(name))
      fail_input("{}: tensor {} has no place in the model that config.json describes", folder,
                 to_json(name));
  return flat;
}

void save_weights(const ParameterTable& table, const ModelConfig& config,
                  const std::vector<float>& flat, const std::string& folder, DType dtype) {
  RONDO_CHECK(flat.size() == static_cast<size_t>(table.flat_elements()), "{} for {} elements",
              flat.size(), table.flat_elements());
  // F32 first, so that every tensor is aligned in a mapped file.
  std::vector<SafetensorsItem> items;
  for (const bool keep : {true, false})
    for (const Parameter& row : table.rows()) {
      if (row.keep_f32 != keep) continue;
      const DType as = keep ? DType::kF32 : dtype;
      items.push_back({row.name, as, row.shape, [&flat, &row, as](std::byte* out) {
                         convert_from_float(flat.data() + row.offset, row.elements(), as, out);
                       }});
    }
  // transformers wants to be told which library the tensors are of.
  write_safetensors((fs::path(folder) / kWeights).string(), items, {{"format", "pt"}});
  Value json = config.json;
  json.set("architectures", Value::Array{config.architecture});
  set_dtype(json, dtype);
  write_file_atomic(fs::path(folder) / "config.json", to_json(json, 2) + "\n");
}

}  // namespace rondo

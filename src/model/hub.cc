#include "model/hub.h"

#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"

namespace rondo {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void to_floats(const SafetensorsFile::Entry& entry, float* out, int64_t n) {
  if (entry.dtype == DType::kF32) {
    std::memcpy(out, entry.data, static_cast<size_t>(n) * 4);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits;
    std::memcpy(&bits, entry.data + 2 * i, 2);
    out[i] = entry.dtype == DType::kBF16 ? to_float(BF16{bits}) : to_float(F16{bits});
  }
}

void from_floats(const float* in, int64_t n, DType dtype, std::byte* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, in, static_cast<size_t>(n) * 4);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t bits = dtype == DType::kBF16 ? to_bf16(in[i]).bits : to_f16(in[i]).bits;
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

// Layers of MTP come after the main model's.
bool of_mtp(const std::string& name, const ModelConfig& config) {
  const std::string prefix = "model.layers.";
  if (!name.starts_with(prefix)) return false;
  return std::atoll(name.c_str() + prefix.size()) >= config.num_hidden_layers;
}

}  // namespace

HubFolder::HubFolder(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string single = folder + "/model.safetensors";
  const std::string index = single + ".index.json";
  std::set<std::string> shards;
  std::map<std::string, std::string> promised;
  if (fs::exists(index)) {
    const Value json = parse_json(read_file(index), index);
    const Value* map = json.find("weight_map");
    if (!map || !map->as_object()) fail_input("{}: weight_map is missing", index);
    for (const auto& [name, file] : *map->as_object()) {
      const std::string* text = file.as_string();
      if (!text || text->empty() || text->find('/') != std::string::npos)
        fail_input("{}: {} names no file of this folder", index, name);
      promised[name] = *text;
      shards.insert(*text);
    }
  } else if (fs::exists(single)) {
    shards.insert("model.safetensors");
  } else {
    fail_input("{}: neither model.safetensors nor model.safetensors.index.json is there", folder);
  }
  for (const std::string& shard : shards) {
    files_.push_back(std::make_unique<SafetensorsFile>(folder + "/" + shard));
    for (const auto& [name, entry] : files_.back()->tensors()) {
      if (!tensors_.emplace(name, entry).second)
        fail_input("{}: tensor {} stands in two files", folder, name);
      if (!promised.empty() && (!promised.contains(name) || promised[name] != shard))
        fail_input("{}: tensor {} is in {}, which the index does not say", folder, name, shard);
    }
  }
  for (const auto& [name, shard] : promised)
    if (!tensors_.contains(name))
      fail_input("{}: tensor {} is not in {}, where the index has it", folder, name, shard);
}

std::vector<float> load_weights(const ParameterTable& table, const ModelConfig& config,
                                const std::string& folder, const std::vector<float>* missing_mtp) {
  const HubFolder hub(folder);
  std::vector<float> flat(static_cast<size_t>(table.flat_elements()), 0);
  if (missing_mtp) flat = *missing_mtp;
  for (const Parameter& row : table.rows()) {
    const auto it = hub.tensors().find(row.name);
    if (it == hub.tensors().end()) {
      if (row.alias || (missing_mtp && of_mtp(row.name, config))) continue;
      fail_input("{}: tensor {} {} is missing", folder, row.name, shape_text(row.shape));
    }
    const SafetensorsFile::Entry& entry = it->second;
    if (entry.dtype != DType::kF32 && entry.dtype != DType::kBF16 && entry.dtype != DType::kF16)
      fail_input("{}: tensor {} is {}; F32, BF16 or F16 is wanted", folder, row.name,
                 hub_name_of(entry.dtype));
    if (entry.shape != row.shape)
      fail_input("{}: tensor {} is {}; {} is wanted", folder, row.name, shape_text(entry.shape),
                 shape_text(row.shape));
    float* out = flat.data() + row.offset;
    if (!row.alias) {
      to_floats(entry, out, row.elements());
      continue;
    }
    std::vector<float> copy(static_cast<size_t>(row.elements()));
    to_floats(entry, copy.data(), row.elements());
    if (std::memcmp(copy.data(), out, copy.size() * sizeof(float)) != 0)
      fail_input("{}: tensor {} differs from the main model's, of which it must be a copy", folder,
                 row.name);
  }
  for (const auto& [name, entry] : hub.tensors())
    if (!table.find(name))
      fail_input("{}: tensor {} {} is none of this model's", folder, name, shape_text(entry.shape));
  return flat;
}

void save_weights(const ParameterTable& table, const ModelConfig& config,
                  const std::vector<float>& flat, const std::string& folder, DType dtype) {
  std::vector<SafetensorsItem> items;
  for (const Parameter& row : table.rows()) {
    const DType kept = row.keep_f32 ? DType::kF32 : dtype;
    items.push_back({row.name, kept, row.shape, [&flat, &row, kept](std::byte* out) {
                       from_floats(flat.data() + row.offset, row.elements(), kept, out);
                     }});
  }
  write_safetensors(folder + "/model.safetensors", items, {{"format", "pt"}});
  write_file_atomic(folder + "/config.json", to_json(config.json, 2) + "\n");
}

}  // namespace rondo

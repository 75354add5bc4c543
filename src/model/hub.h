// Model folders of the Hugging Face hub: safetensors files, one or sharded with an index.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "model/parameters.h"
#include "tensor/view.h"

namespace rondo {

// A mapped safetensors file. The constructor refuses what is hostile: a header past the file or
// above 100 MB, offsets that overlap, leave gaps or lie outside, duplicate names, unknown dtypes,
// sizes that do not match shapes.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  struct Entry {
    DType dtype;
    std::vector<int64_t> shape;
    const std::byte* data;
    int64_t bytes;
  };
  const std::map<std::string, Entry>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::unique_ptr<MappedFile> file_;
  std::map<std::string, Entry> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Writes one safetensors file: tensors in the order given, each filled by its callback into memory
// of its size (so that no second copy of the model is held). No time stamps: same input, same
// bytes.
struct SafetensorsItem {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::function<void(std::byte* out)> fill;
};
void write_safetensors(const std::string& path, const std::vector<SafetensorsItem>& items,
                       const std::map<std::string, std::string>& metadata = {});

// All tensors of a folder: model.safetensors, or the shards that model.safetensors.index.json
// names.
class HubFolder {
 public:
  explicit HubFolder(const std::string& folder);
  const std::map<std::string, SafetensorsFile::Entry>& tensors() const { return tensors_; }

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, SafetensorsFile::Entry> tensors_;
};

// The table's rows from a folder in F32, BF16 or F16, as fp32 in the flat layout. InputError names
// the first missing or extra tensor, wrong shape or dtype, or a copy that differs from what it
// copies. Rows of MTP layers may be missing when `missing_mtp` is given (transformers drops them on
// saving): those keep the values of that flat array (the initial ones).
std::vector<float> load_weights(const ParameterTable& table, const ModelConfig& config,
                                const std::string& folder,
                                const std::vector<float>* missing_mtp = nullptr);

// config.json and model.safetensors (F32 or `dtype`) of `flat` into an existing folder.
void save_weights(const ParameterTable& table, const ModelConfig& config,
                  const std::vector<float>& flat, const std::string& folder,
                  DType dtype = DType::kF32);

}  // namespace rondo

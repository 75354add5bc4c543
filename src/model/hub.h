// Model folders of the Hugging Face hub: safetensors files, one or sharded with an index.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/parameters.h"
#include "model/safetensors.h"

namespace rondo {

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

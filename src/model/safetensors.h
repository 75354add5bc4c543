// One safetensors file: a length, a JSON header, the bytes of its tensors without gaps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "tensor/dtype.h"

namespace rondo {

// A mapped safetensors file. The constructor refuses what is hostile: a header past the file or
// above 100 MB, offsets that overlap, leave gaps or lie outside, duplicate names, unknown dtypes,
// sizes that do not match shapes. `data` may be aligned to nothing.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
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
// bytes. Under `path` stands what stood there or the whole new file.
struct SafetensorsItem {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::function<void(std::byte* out)> fill;
};
void write_safetensors(const std::string& path, const std::vector<SafetensorsItem>& items,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace rondo

// Which files a list of files and folders stands for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"

namespace rondo {

using Warn = std::function<void(const std::string&)>;

struct TextFile {
  fs::path path;
  uint64_t bytes = 0;
};

// The files in the order given; a folder stands for all regular files below it, sorted by path.
// Below a folder, symbolic links are not followed and names that begin with a dot are left out; one
// warning says how many. InputError when a path is neither file nor folder.
std::vector<TextFile> list_text_files(const std::vector<std::string>& paths, const Warn& warn);

// read_file(), and an InputError when the size is not what it was when the file was listed.
std::string read_text_file(const TextFile& file);

}  // namespace rondo

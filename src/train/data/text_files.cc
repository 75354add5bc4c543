#include "train/data/text_files.h"

#include <algorithm>

#include "base/error.h"

namespace rondo {
namespace {

struct Skipped {
  int64_t links = 0, hidden = 0, special = 0;
};

void walk(const fs::path& folder, std::vector<TextFile>& out, Skipped& skipped) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    entries.push_back(*it);
  if (error) fail_input("{}: cannot list: {}", folder.string(), error.message());
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().filename().native().starts_with('.')) {
      ++skipped.hidden;
    } else if (entry.is_symlink(error)) {
      ++skipped.links;
    } else if (entry.is_directory(error)) {
      walk(entry.path(), out, skipped);
    } else if (entry.is_regular_file(error)) {
      out.push_back({entry.path(), entry.file_size(error)});
    } else {
      ++skipped.special;
    }
    if (error) fail_input("{}: cannot read: {}", entry.path().string(), error.message());
  }
}

}  // namespace

std::vector<TextFile> list_text_files(const std::vector<std::string>& paths, const Warn& warn) {
  std::vector<TextFile> out;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_regular_file(status)) {
      out.push_back({path, fs::file_size(path)});
      continue;
    }
    if (!fs::exists(status)) fail_input("{}: there is no such file or folder", path);
    if (!fs::is_directory(status)) fail_input("{}: it must be a file or a folder", path);
    const size_t first = out.size();
    Skipped skipped;
    walk(path, out, skipped);
    std::sort(out.begin() + static_cast<int64_t>(first), out.end(),
              [](const TextFile& a, const TextFile& b) { return a.path < b.path; });
    if (skipped.links + skipped.hidden + skipped.special > 0)
      warn(
          fmt::format("{}: left out {} symbolic links, {} names that begin with a dot, {} special "
                      "files",
                      path, skipped.links, skipped.hidden, skipped.special));
  }
  return out;
}

std::string read_text_file(const TextFile& file) {
  std::string text = read_file(file.path);
  if (text.size() != file.bytes)
    fail_input("{}: it was {} bytes when it was listed and is {} now; it must not change meanwhile",
               file.path.string(), file.bytes, text.size());
  return text;
}

}  // namespace rondo

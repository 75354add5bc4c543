// For tests: a folder of its own that goes away, and what an InputError said.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <functional>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace rondo {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (fs::temp_directory_path() / "rondo_test_XXXXXX").string();
    RONDO_CHECK(mkdtemp(name.data()) != nullptr, "{}", name);
    path_ = name;
  }
  ~TestFolder() { fs::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  fs::path operator/(const std::string& name) const { return path_ / name; }
  std::string prefix(const std::string& name) const { return (path_ / name).string(); }
  // Makes the folders above it too.
  fs::path write(const std::string& name, std::string_view bytes) const {
    fs::create_directories((path_ / name).parent_path());
    write_file_atomic(path_ / name, bytes);
    return path_ / name;
  }

 private:
  fs::path path_;
};

inline std::string input_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks\n" << part;
}

}  // namespace rondo

// Files: read whole, mapped, and written so that a crash never leaves half a file under its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace rondo {

namespace fs = std::filesystem;

// The whole file. InputError with the path and the system's reason when it cannot be read.
std::string read_file(const fs::path& path);

// Writes PATH.tmp beside it, fsyncs, renames over `path`, fsyncs the parent. On failure (disk full)
// throws InputError, removes the .tmp and leaves what stood at `path` as it was.
void write_file_atomic(const fs::path& path, std::string_view bytes);

void fsync_path(const fs::path& path);  // a file or a folder

// A file mapped read-only for as long as this lives. An empty file has an empty span.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A file written front to back. Every call throws InputError with the path on failure (disk full).
// close() fsyncs; a writer that is destroyed without close() leaves a file to be thrown away.
class FileWriter {
 public:
  explicit FileWriter(const fs::path& path);  // creates or truncates
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void close();
  uint64_t written() const { return written_; }

 private:
  void flush();
  fs::path path_;
  int fd_ = -1;
  std::string buffer_;
  uint64_t written_ = 0;
};

// A lock file held while this lives; a process that dies lets go of it. InputError when another
// process holds it.
class FileLock {
 public:
  explicit FileLock(const fs::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace rondo

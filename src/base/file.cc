#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace rondo {
namespace {

constexpr size_t kWriteBuffer = 1 << 20;

[[noreturn]] void fail_system(const fs::path& path, const char* what, int error = errno) {
  fail_input("{}: cannot {}: {}", path.string(), what, std::strerror(error));
}

int open_for_reading(const fs::path& path, uint64_t* size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_system(path, "open");
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    const int error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    ::close(fd);
    fail_system(path, "read", error);
  }
  *size = static_cast<uint64_t>(info.st_size);
  return fd;
}

}  // namespace

std::string read_file(const fs::path& path) {
  uint64_t size = 0;
  const int fd = open_for_reading(path, &size);
  std::string out(size, '\0');
  uint64_t have = 0;
  while (have < size) {
    const ssize_t n = ::read(fd, out.data() + have, size - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      ::close(fd);
      fail_system(path, "read", error);
    }
    if (n == 0) break;
    have += static_cast<uint64_t>(n);
  }
  ::close(fd);
  out.resize(have);
  return out;
}

void fsync_path(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_system(path, "open");
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0) fail_system(path, "fsync", error);
}

void write_file_atomic(const fs::path& path, std::string_view bytes) {
  fs::path temporary = path;
  temporary += ".tmp";
  try {
    FileWriter writer(temporary);
    writer.write(bytes);
    writer.close();
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_system(path, "rename");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  fsync_path(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  uint64_t size = 0;
  const int fd = open_for_reading(path, &size);
  if (size > 0) {
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (mapped == MAP_FAILED) fail_system(path, "map", error);
    data_ = static_cast<const std::byte*>(mapped);
    size_ = size;
  } else {
    ::close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

FileWriter::FileWriter(const fs::path& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail_system(path, "create");
  buffer_.reserve(kWriteBuffer);
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kWriteBuffer - buffer_.size());
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), n);
    bytes = bytes.subspan(n);
    if (buffer_.size() == kWriteBuffer) flush();
  }
}

void FileWriter::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_system(path_, "write");
    done += static_cast<size_t>(n);
  }
  buffer_.clear();
}

void FileWriter::close() {
  flush();
  if (::fsync(fd_) != 0) fail_system(path_, "fsync");
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) fail_system(path_, "close");
}

FileLock::FileLock(const fs::path& path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) fail_system(path, "create");
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    ::close(std::exchange(fd_, -1));
    fail_input("{} is in use by another process; wait for it or choose another folder",
               path.parent_path().string());
  }
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace rondo

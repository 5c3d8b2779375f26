// OpenFd: an open file descriptor, closed with the value that holds it; and whole reads and writes on one.
// Thread: one at a time.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace muster {

class OpenFd {
 public:
  explicit OpenFd(int fd = -1) : fd_(fd) {}
  OpenFd(OpenFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFd& operator=(OpenFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OpenFd() { close(); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Why a call on a file failed, from errno: not_found, denied or failed. `what` is "opening".
Error file_error(std::string_view what, const std::string& path, int number);

// `path` is for the message.
Status write_bytes(int fd, std::string_view content, const std::string& path);
// To the end: the size that stat() reports for a /proc or /sys file is meaningless.
Result<std::string> read_bytes(int fd, const std::string& path);

}  // namespace muster

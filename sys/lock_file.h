// An exclusive lock for the lifetime of the object, on a file that contains its holder's pid. Released by the
// kernel when the process dies.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

class LockFile {
 public:
  // Code::conflict if another process holds it; the message is `held` and the holder's pid.
  static Result<LockFile> take(const std::string& path, const std::string& held);
  // Blocks until no other process or thread holds it.
  static Result<LockFile> wait(const std::string& path);
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();

 private:
  explicit LockFile(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace muster

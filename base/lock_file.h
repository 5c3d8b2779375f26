// An exclusive lock for the life of the object, in a file that names its holder. Released by the kernel when
// the process dies.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

class LockFile {
 public:
  // Code::conflict if another process holds it: `held`, a text for people, and the holder's pid.
  static Result<LockFile> take(const std::string& path, const std::string& held);
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();

 private:
  explicit LockFile(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace muster

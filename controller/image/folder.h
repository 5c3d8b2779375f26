// The folder of one image's name, <state>/images/<name>: one writer at a time, and which version is the present one.
// Thread: blocking; for worker threads.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace muster {

// Letters, digits and . _ -, not starting with one of . and -: it becomes a folder's name and an argument of programs.
bool valid_image_name(const std::string& name);

// Held while an image is built or imported; gone with the process, however it ends.
class ImageLock {
 public:
  // Creates the folder. Code::conflict when somebody else holds it.
  static Result<ImageLock> take(const std::string& folder);
  ImageLock(ImageLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ImageLock& operator=(ImageLock&&) = delete;
  ~ImageLock();

 private:
  explicit ImageLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// Points <folder>/current at `version`, atomically.
Status make_current(const std::string& folder, const std::string& version);

}  // namespace muster

// A file system that is mounted only while it is in use. Thread: blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "sys/os.h"

namespace muster {

// A folder with a mounted file system, to be closed after use.
class OpenFolder {
 public:
  virtual ~OpenFolder() = default;
  virtual Files files() const = 0;
  // On Ok, everything is on the disk. The destructor does the same, and ignores the error.
  virtual Status close() = 0;
};

// Mounted from construction to close().
class Mounted : public OpenFolder {
 public:
  enum class Way { read, write };
  // Creates `at`, accessible to root only, and mounts there. conflict: the device is in use.
  static Result<Mounted> mount(const std::string& device, const char* type, const std::string& at,
                               const char* options, Way way = Way::write);
  Mounted(Mounted&& other) noexcept;
  Mounted& operator=(Mounted&&) = delete;
  ~Mounted() override { (void)close(); }
  Files files() const override { return Files(at_); }
  const std::string& at() const { return at_; }
  Status close() override;

 private:
  explicit Mounted(std::string at) : at_(std::move(at)) {}
  std::string at_;
};

// Flushes the file system of `folder` to its disk.
Status sync_file_system(const std::string& folder);
// Grows a mounted ext4 to `size` bytes. The kernel does it online, without a tool.
Status grow_ext4(const std::string& at, uint64_t size);

}  // namespace muster

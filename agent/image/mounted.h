// A file system mounted for as long as it is worked in. Thread: blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/os.h"
#include "base/result.h"

namespace muster {

// A folder with a file system in it, which somebody has to be done with.
class OpenFolder {
 public:
  virtual ~OpenFolder() = default;
  virtual Files files() const = 0;
  // Everything is on the disk when this returns Ok. The destructor does the same and says nothing.
  virtual Status close() = 0;
};

// Mounted from construction to close().
class Mounted : public OpenFolder {
 public:
  enum class Way { read, write };
  // `at` is made, for root alone. conflict: something else holds the device.
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

// All of the file system that holds `folder` is on its disk.
Status sync_file_system(const std::string& folder);
// Grows a mounted ext4 to `size` bytes; the kernel does the work, no tool is needed.
Status grow_ext4(const std::string& at, uint64_t size);

}  // namespace muster

// Writes a "newc" cpio archive: the format of an initramfs. Everything is owned by root, with a fixed time,
// so that equal trees give equal archives. Thread: one per object. Only tree() does I/O.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

class CpioWriter {
 public:
  // Paths without a leading slash; parents must be added first. `mode`: permission bits.
  void directory(const std::string& path, unsigned mode = 0755);
  void file(const std::string& path, std::string_view content, unsigned mode = 0644);
  void symlink(const std::string& path, const std::string& target);
  void device(const std::string& path, unsigned mode, unsigned major, unsigned minor);  // character device
  // Adds the content of a folder, sorted by path: folders, files and links; permission bits are kept.
  Status tree(const std::string& folder);
  std::string finish();

 private:
  void entry(const std::string& path, unsigned mode, std::string_view content, unsigned links, unsigned major,
             unsigned minor);
  std::string out_ = {};
  unsigned inode_ = 1;
};

// Compresses with zstd into one frame, with a window size that the kernel's decoder accepts.
Result<std::string> compress_initramfs(const std::string& archive, int level);

}  // namespace muster

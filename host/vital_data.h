// The vital product data (VPD) of PCI functions: product name, part and serial numbers, an adapter's role on
// its board. Root only; as others it is empty.
//
// The function's firmware hands it out four bytes at a time: a whole one takes tens of milliseconds, which
// every list of ports would wait for again. It is read once for as long as the function is there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "sys/os.h"

namespace muster {

// What was read. A function that was removed and added again has another inode in sysfs, and is read again;
// so is one that could not be read. Thread safety: all methods may be called from any thread.
class VitalData {
 public:
  // `device`: the function's folder in sysfs, or a link to it. "" if it has none, or it cannot be read.
  std::string of(const Files& files, const std::string& device);
  // How often a function was read.
  size_t reads() const;

 private:
  struct Entry {
    int64_t changed = 0;  // ctime of the file, nanoseconds
    std::string data = {};
  };
  mutable std::mutex mutex_ = {};
  std::map<std::pair<dev_t, ino_t>, Entry> read_ = {};
  size_t reads_ = 0;
};

// The same, shared by all of this process. Only the running machine's is kept: below another root, files
// change as no device does.
std::string vital_data(const Files& files, const std::string& device);

}  // namespace muster

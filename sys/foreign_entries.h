// ForeignEntries: what lies below a folder and belongs neither to an account nor to root. Thread safety:
// stateless function.
#pragma once

#include <cstdint>
#include <string>

#include "sys/os.h"

namespace muster {

struct ForeignEntries {
  size_t count = 0;
  std::string first;  // its path
  int64_t uid = -1;   // of the first
};

// Below the folder, not of it. Follows no link, and enters no other file system. A folder that cannot be
// opened, or is a hundred levels down, counts as empty.
ForeignEntries foreign_entries(const Files& files, const std::string& path, int64_t uid);

}  // namespace muster

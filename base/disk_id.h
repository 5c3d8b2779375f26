// DiskId: what a disk is selected by, from the inventory to the byte that is written. base/disk_identity.h
// has the rule of when a disk matches it.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

struct DiskId {
  std::string serial = {};
  std::string wwid = {};  // "eui.…", "naa.…", "nvme.…"; trimmed
  std::string model = {};
  uint64_t size_bytes = 0;
};

}  // namespace muster

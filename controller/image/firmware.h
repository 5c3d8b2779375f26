// Firmware files for the RAM system and the initrd: those that their kernel modules name, and CPU microcode
// (docs/decisions/0002). Both are taken from the image's own tree, where the packages listed under a recipe's
// key `firmware` installed them. Thread: blocking; for worker threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

// Returns the files that a module (its unpacked bytes) may request, such as "intel/ice/ddp/ice.pkg":
// modinfo's `firmware` lines.
std::vector<std::string> firmware_named_by(const std::string& module);

// Limit on the size of the firmware, which each node fetches at every network boot and keeps in memory. It is
// twice the size of all files that network and storage modules of Debian 12's kernel name.
constexpr uint64_t kMostFirmware = 64 << 20;

struct FirmwareTaken {
  size_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> too_large = {};  // files that did not fit
  std::vector<std::string> lacking = {};    // modules that name files missing in the tree
};

// Copies the files that `modules` (paths below `folder`, unpacked in `out`) may request from the tree's
// firmware folder to that of `out`, still compressed: the smallest files first, up to `most` bytes. Missing
// files are left out: most modules name files for hardware that is not present.
Result<FirmwareTaken> collect_firmware(const std::string& tree, const std::string& out,
                                       const std::string& folder, const std::vector<std::string>& modules,
                                       uint64_t most = kMostFirmware);

// Returns the CPU microcode in `tree` as the uncompressed archive that a kernel reads first, to be prepended
// to an initrd; "" if there is none.
Result<std::string> early_microcode(const std::string& tree);
// Copies the microcode from `tree` to `out`, so that an initrd can be packed from `out` without the tree.
Status collect_microcode(const std::string& tree, const std::string& out);

}  // namespace muster

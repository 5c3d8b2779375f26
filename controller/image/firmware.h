// Firmware files for the RAM system and the initrd: the files that their kernel modules name, and processors'
// microcode (docs/decisions/0002). Both come from the image's own tree, where the packages of a recipe's key
// `firmware` have put them. Thread: blocking; for worker threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

// The files that a module (its unpacked bytes) may request, "intel/ice/ddp/ice.pkg": modinfo's lines
// `firmware`.
std::vector<std::string> firmware_named_by(const std::string& module);

// Each node has all of it in memory and fetches it at every network boot. Twice what the adapters of Debian
// 12's kernel name.
constexpr uint64_t kMostFirmware = 64 << 20;

struct FirmwareTaken {
  size_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> too_large = {};  // files that did not fit
  std::vector<std::string> lacking = {};    // modules that name files missing in the tree
};

// Copies what the `modules` (paths below `folder`, unpacked in `out`) may request from the tree's firmware
// folder to that of `out`, packed as it is there: the smallest files first, up to `most` bytes. Missing files
// are left out: most modules name files for hardware that is not present.
Result<FirmwareTaken> collect_firmware(const std::string& tree, const std::string& out,
                                       const std::string& folder, const std::vector<std::string>& modules,
                                       uint64_t most = kMostFirmware);

// The processors' microcode of `tree` as the uncompressed archive that a kernel reads before anything else,
// to be put in front of an initrd; "" when there is none.
Result<std::string> early_microcode(const std::string& tree);
// So that an initrd can be packed from `out` without the tree.
Status collect_microcode(const std::string& tree, const std::string& out);

}  // namespace muster

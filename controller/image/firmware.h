// Firmware files for the RAM system and the initrd: what the kernel modules in there name, and processors'
// microcode (docs/decisions/0002). Both come from the image's own tree, where the packages of a recipe's key
// `firmware` have put them. Thread: blocking; for worker threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

// The files that a module (its unpacked bytes) may ask for, "intel/ice/ddp/ice.pkg": modinfo's lines
// `firmware`.
std::vector<std::string> firmware_named_by(const std::string& module);

// Each node holds all of it in memory and fetches it at every network boot. Twice what the adapters of Debian
// 12's kernel name.
constexpr uint64_t kMostFirmware = 64 << 20;

struct FirmwareTaken {
  size_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> too_large = {};  // files that no room was left for
  std::vector<std::string> lacking = {};    // modules that name files of which the tree has none
};

// Copies what the `modules` (paths below `folder`, unpacked in `out`) may ask for from the tree's firmware
// folder to that of `out`, packed as it is there: the smallest files first, up to `most` bytes. What the tree
// lacks is left out: most modules name files for hardware that is not here.
Result<FirmwareTaken> collect_firmware(const std::string& tree, const std::string& out,
                                       const std::string& folder, const std::vector<std::string>& modules,
                                       uint64_t most = kMostFirmware);

// The processors' microcode of `tree` as the uncompressed archive that a kernel reads before anything else,
// to stand in front of an initrd; "" when there is none.
Result<std::string> early_microcode(const std::string& tree);
// So that an initrd can be packed from `out` without the tree.
Status collect_microcode(const std::string& tree, const std::string& out);

}  // namespace muster

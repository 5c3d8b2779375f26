// Data disks: from the disks of the approved plan to the present devices, and the permission to write to one.
//
// Every destructive module goes through here; nothing else in agent/steps writes to a disk.
//   - a disk is found by WWID, serial, size and model (base/disk_identity.h); two matches, or a partial
//     match, are an error;
//   - never a disk that contains the running system, is mounted, used as swap or otherwise in use, is
//     read-only, or is remote;
//   - its content is probed again while it is open exclusively, and must be the approved one;
//   - policy `keep` is never written, `format-if-blank` only when blank, `format` when its content is the
//     approved one.
// Thread: blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/disk/block_device.h"
#include "agent/disk/disk_probe.h"
#include "agent/step.h"
#include "base/facts.h"

namespace muster::steps {

struct WantedDisk {
  std::string serial, wwid, model, content_hash;
  std::string policy;  // keep | format-if-blank | format
  uint64_t size_bytes = 0;
};
// [{serial, wwid, model, size_bytes, content_hash, policy}]; invalid for an empty list, a disk without size,
// or without both serial and WWID, or one disk twice.
Result<std::vector<WantedDisk>> wanted_disks(const Json& params, const char* key = "disks");

// The same disks as they are now, in the order given.
Result<std::vector<DiskFacts>> resolve_disks(const Files& files, const std::vector<WantedDisk>& wanted);
std::string device_path(const std::string& kernel_name);  // "/dev/nvme0n1"
// Its name in records of interrupted work: unique for each disk.
std::string key_of(const WantedDisk& disk);
std::string title_of(const WantedDisk& disk);  // for messages

// Kernel name of the assembled array whose members are exactly these disks; "" when none of them is in any
// array. conflict: some are, or they are in one with other members.
Result<std::string> array_over(const Files& files, const std::vector<DiskFacts>& disks);

// The permission: opens the disk exclusively, probes it again and applies the rules above. The caller writes
// through the result (or closes it and runs a tool at once).
Result<BlockDevice> open_for_format(const Files& files, const WantedDisk& wanted, const DiskFacts& disk);
// The same after an earlier run recorded its intent and was interrupted: the disk may also be blank now, or
// contain what that run left according to `ours`. Any other content is refused, and so is a disk without a
// content hash in this run's plan.
Result<BlockDevice> open_after_interruption(const Files& files, const WantedDisk& wanted,
                                            const DiskFacts& disk,
                                            const std::function<bool(const DiskContent&)>& ours);
// Zeroes every place that is read before a disk counts as blank (agent/disk/look.h).
Status wipe(const BlockDevice& device);

// Folder of records of destructive work in progress; survives re-images if /state exists.
std::string intent_path(const Files& files, const std::string& name);

}  // namespace muster::steps

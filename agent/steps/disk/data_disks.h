// Data disks: finds the devices of the disks in the approved plan, and decides whether one may be written to.
//
// Every destructive module uses these functions; nothing else in agent/steps writes to a disk.
//   - a disk is found by WWID, serial, size and model (base/disk_identity.h); two matches, or a partial
//     match, are an error;
//   - never a disk that contains the running system, is mounted, used as swap or otherwise in use, is a path
//     of a multipath map, is read-only, or is remote;
//   - its content is probed again while it is open exclusively, and must match the approved content;
//   - a disk with policy `keep` is never written to, with `format-if-blank` only if blank, with `format` only
//     if its content matches the approved content.
// Thread safety: stateless functions, which block.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/core/step.h"
#include "agent/disk/block_device.h"
#include "agent/disk/disk_probe.h"
#include "base/facts.h"

namespace muster::steps {

struct WantedDisk : DiskId {
  std::string content_hash;
  std::string policy;  // keep | format-if-blank | format
};
// Parses [{serial, wwid, model, size_bytes, content_hash, policy}]; invalid for an empty list, a disk without
// a size or without both serial and WWID, or a disk that is listed twice.
Result<std::vector<WantedDisk>> wanted_disks(const Json& params, const char* key = "disks");
// The same, for a parameter of this type (agent/core/parameters.h), which has no default.
Status read_own(const Json& list, std::vector<WantedDisk>& disks);
inline Json to_json(const std::vector<WantedDisk>&) { return Json(); }

// The present devices of these disks, in the order given.
Result<std::vector<DiskFacts>> resolve_disks(const Files& files, const std::vector<WantedDisk>& wanted);
std::string device_path(const std::string& kernel_name);  // "/dev/nvme0n1"
// Name of a disk in records of interrupted work, unique for each disk.
std::string key_of(const WantedDisk& disk);
std::string title_of(const WantedDisk& disk);  // name of a disk in messages

// Returns the kernel name of the assembled array whose members are exactly these disks; "" if none of them is
// in an array. conflict: only some of them are, or the array also has other members.
Result<std::string> array_over(const Files& files, const std::vector<DiskFacts>& disks);

// Opens the disk exclusively, probes it again and applies the rules above; denied if it must not be written
// to. The caller writes through the result, or closes it and runs a tool at once.
Result<BlockDevice> open_for_format(const Files& files, const WantedDisk& wanted, const DiskFacts& disk);
// Like open_for_format(), after an earlier run recorded its intent and was interrupted: the disk may also be
// blank, or contain what that run left behind (`ours` returns true). Any other content is denied, and so is a
// disk whose content hash is not in this run's plan.
Result<BlockDevice> open_after_interruption(const Files& files, const WantedDisk& wanted,
                                            const DiskFacts& disk,
                                            const std::function<bool(const DiskContent&)>& ours);
// Zeroes every region that is checked to decide whether a disk is blank (agent/disk/look.h).
Status wipe(const BlockDevice& device);

// Path of the record of destructive work in progress; it survives a re-image if /state exists.
std::string intent_path(const Files& files, const std::string& name);

}  // namespace muster::steps

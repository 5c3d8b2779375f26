// The drives of this machine: which block devices of the kernel are drives to measure, with the reason for
// each that is not. The only place that decides this: the disk scan, the measurement of drives, the search in
// the kernel log, SMART, the search for a file system and the inventory's properties read this.
//
// What has no hardware of its own (loop, RAM, device-mapper, md, zram) is not listed. Reads /sys only.
// Thread safety: plain value types, stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/left_out.h"
#include "sys/os.h"

namespace muster {

struct DrivePart {
  std::string name = {};       // kernel name
  std::string transport = {};  // as DiskFacts::transport (base/facts.h)
  std::string map = {};        // the dm-multipath map that holds it; "": none
  Why why = Why::real;
  // False for what holds no data of this machine: such devices are not in the inventory's list of disks. A
  // disk reached over a network or USB is, and so is one with host-managed zones.
  bool is_disk() const;
};

// All block devices with hardware, by name.
std::vector<DrivePart> drive_devices(const Files& files);
// The kernel names of those to measure.
std::vector<std::string> real_drives(const Files& files);

// False for an NVMe controller ("nvme3") that is reached over a network: it is another host's.
bool is_local_nvme(const Files& files, const std::string& controller);
// True for block devices of which the name alone shows that no file system of this machine is kept on them,
// and which are better not opened: optical and floppy drives, network block devices, RAM disks.
bool is_never_searched(const std::string& name);

// True if errors that the kernel reports for this name are errors of a drive of this machine. A name that is
// not in sysfs (any more) is judged by itself: a drive that fails is removed.
bool is_drive_of_machine(const Files& files, const std::string& name);

}  // namespace muster

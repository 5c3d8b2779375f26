// Shared by the modules for Ceph on one node (agent/storage/ceph_*.cc): files of its user, keys, and which
// disk is which OSD. Thread: blocking.
#pragma once

#include <string>
#include <vector>

#include "agent/disk/disk_probe.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/storage/ceph.h"
#include "agent/storage/parts.h"

namespace muster::steps {

inline constexpr const char* kCephUser = "ceph";  // and its group
// Help of the parameter `deadline_seconds`.
inline constexpr const char* kCephDeadline = "how long to wait for the change to take effect";

Part ceph_folder(const std::string& path);
Part ceph_keyring(const std::string& path, const std::string& who, const std::string& key);
Status give_to_ceph(StepContext& context, const std::string& path);
// Returns the key of `who` from the monitors, which create a missing key if `caps` are given.
Result<std::string> ceph_key_of(StepContext& context, const std::string& who,
                                const std::vector<std::string>& caps = {});

struct CephStore {
  WantedDisk wanted;
  std::string uuid, device;  // device: "/dev/nvme1n1"
  DiskFacts disk;
};

// Returns the OSDs of the parameter `disks` of `ceph_osds`, each with its current disk.
Result<std::vector<CephStore>> ceph_stores(const StepContext& context, const Json& disks);
Result<DiskContent> ceph_content_of(const StepContext& context, const CephStore& store);
// True if the disk contains exactly this OSD.
bool is_ceph_store(const DiskContent& content, const CephStore& store);

}  // namespace muster::steps

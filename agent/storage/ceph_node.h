// Shared by the modules for Ceph on one node (agent/storage/ceph_*.cc): files of its user, keys, and which
// disk is which OSD. Thread: blocking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/disk/disk_probe.h"
#include "agent/steps/disk/data_disks.h"
#include "agent/steps/step_modules.h"
#include "agent/storage/parts.h"

namespace muster::steps {

// Output of `ceph ARGS` with this node's keys. Fails if the program does, or if no monitor answers in time.
Result<std::string> ceph_text(StepContext& context, std::vector<std::string> args,
                              const std::string& input = "");
Result<Json> ceph_json(StepContext& context, std::vector<std::string> args, const std::string& input = "");

struct CephOsd {
  int64_t id = -1;
  std::string uuid, host;  // host: its host below the root of the CRUSH map; "" if it has none
  bool up = false, in = false;
};
// `with_hosts` false leaves `host` empty and saves a call of `ceph`, which takes seconds on a busy machine.
Result<std::vector<CephOsd>> ceph_osds(StepContext& context, bool with_hosts = true);

// `ceph osd QUESTION ID...` ("safe-to-destroy" or "ok-to-stop"): "" if yes, else why not.
Result<std::string> ceph_objection(StepContext& context, const char* question,
                                   const std::vector<int64_t>& osds);

struct CephMove {
  std::vector<CephOsd> leaving, staying;
  int64_t copies = 2;
};
// "" if the data fits on those that stay; else the reason, such as an OSD that would be too full.
// `dump`, `df`: output of `ceph osd dump` and `ceph osd df`, whose sizes are in KiB. Pure.
std::string ceph_lacks_room(const Json& dump, const Json& df, const CephMove& move);

inline constexpr const char* kCephUser = "ceph";  // and its group
inline constexpr const char* kCephDeadline = "how long to wait for the change to take effect";

Part ceph_folder(const std::string& path);
Part ceph_keyring(const std::string& path, const std::string& who, const std::string& key);
Status give_to_ceph(StepContext& context, const std::string& path);
// From the monitors, which create a missing key if `caps` are given.
Result<std::string> ceph_key_of(StepContext& context, const std::string& who,
                                const std::vector<std::string>& caps = {});

struct CephStore {
  WantedDisk wanted;
  std::string uuid, device;  // device: "/dev/nvme1n1"
  DiskFacts disk;
};

// From the parameter `disks` of `ceph_osds`, each with its current disk.
Result<std::vector<CephStore>> ceph_stores(const StepContext& context, const Json& disks);
Result<DiskContent> ceph_content_of(const StepContext& context, const CephStore& store);
// True if the disk contains exactly this OSD.
bool is_ceph_store(const DiskContent& content, const CephStore& store);

}  // namespace muster::steps

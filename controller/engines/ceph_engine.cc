// Ceph: an object store on each drive, monitors that decide by majority, and a file system on top.
#include "controller/engines/ceph_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "controller/engines/engine.h"

namespace muster {
namespace {

// Three monitors keep a majority if one is lost; two would stop if either were lost.
constexpr int kMonitors = 3;

// A version 8 UUID (RFC 9562): 122 bits are free to choose.
std::string uuid_from(const std::string& text) {
  const std::string digest = sha256(text), hex = digest.substr(digest.find(':') + 1);
  return fmt::format("{}-{}-8{}-a{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 3),
                     hex.substr(15, 3), hex.substr(18, 12));
}

// The mount source names the file system, not the monitors, which may change while it is mounted.
RightMount ceph_mount(const MountedSection& of) {
  return {"ceph", fmt::format("muster@{}.{}=/", ceph_fsid(of.cluster, of.section.name), of.section.name)};
}

bool is_ours(const DiskFacts& disk, const std::string& cluster, const StorageSpec& section) {
  return disk.partitions.empty() && disk.signatures.size() == 1 &&
         disk.signatures[0] ==
             "ceph_bluestore uuid=" + ceph_osd_uuid(ceph_fsid(cluster, section.name), disk.serial);
}

Json monitors(const Json& members) {
  Json out = Json::array();
  for (size_t i = 0; i < (members.size() >= kMonitors ? kMonitors : 1); ++i) out.push_back(members[i]);
  return out;
}

// The pools' min_size: a placement group with fewer copies stops.
int min_copies(const StorageSpec& s) { return s.copies - s.copies / 2; }
int ceph_can_miss(const StorageSpec& s) { return s.copies - min_copies(s); }

// The object stores (OSDs) of a node share a quarter of its memory: each gets at most Ceph's default of 4
// GiB, and at least the minimum that Ceph accepts.
void add_ceph_context(const EngineInput& in, const StorageSpec& s, Json& item) {
  const std::string fsid = ceph_fsid(in.spec.cluster, s.name);
  const Json mons = monitors(item["members"]);
  for (auto& disk : item["disks"]) disk["uuid"] = ceph_osd_uuid(fsid, disk["serial"].get<std::string>());
  const bool is_mon =
      std::any_of(mons.begin(), mons.end(), [&](const Json& m) { return m["name"] == in.node.name; });
  const auto& machines = in.machines;
  const auto seen = machines.find(in.node.name);
  const int64_t memory = seen == machines.end() ? in.node.hardware.memory_bytes_min
                                                : static_cast<int64_t>(seen->second->memory_bytes);
  const int64_t share = memory / 4 / std::max<int64_t>(1, static_cast<int64_t>(item["disks"].size()));
  item.update({{"fsid", fsid},
               {"mons", mons},
               {"is_mon", is_mon},
               {"member_count", item["members"].size()},
               {"standbys", mons.size() > 1 ? 1 : 0},
               {"min_copies", min_copies(s)},
               {"osd_memory", std::clamp<int64_t>(share >> 20, 896, 4096) << 20}});
}

}  // namespace

std::string ceph_fsid(const std::string& cluster, const std::string& storage) {
  return uuid_from("ceph " + cluster + "/" + storage);
}
std::string ceph_osd_uuid(const std::string& fsid, const std::string& serial) {
  return uuid_from("osd " + fsid + "/" + serial);
}

// A second cluster would need daemons, ports and keys of its own on the same nodes.
const StorageEngine kCeph = {.name = "ceph",
                             .playbook = "storage-ceph",
                             .reach = Reach::shared,
                             .without = {"server", "level", "fs"},
                             .copies_on_nodes = true,
                             .fewest_copies = 2,
                             .can_miss = ceph_can_miss,
                             .once = true,
                             .by_disk = true,
                             .signs_disks = true,
                             .is_ours = is_ours,
                             .leader_word = "only monitor",
                             .keeps_metadata = true,
                             .metadata_word = "monitor's store",
                             .quorum = kMonitors,
                             .mount = ceph_mount,
                             .add_context = add_ceph_context};

}  // namespace muster

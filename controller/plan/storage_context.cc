#include "controller/plan/storage_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/plan/external.h"
#include "controller/plan/interconnect.h"

namespace muster {
namespace {

Json disk_list(const NodeDisks& disks, const NodeSpec& node, const std::string& group, bool with_content) {
  Json out = Json::array();
  const auto found = disks.groups.find(group);
  if (found == disks.groups.end()) return out;
  const auto declared = node.disks.find(group);
  const DiskPolicy policy = declared == node.disks.end() ? DiskPolicy::keep : declared->second.policy;
  const char* word = policy == DiskPolicy::keep     ? "keep"
                     : policy == DiskPolicy::format ? "format"
                                                    : "format-if-blank";
  // The hash is the right to write: only what the destruction list names gets one. A disk that is used again
  // as it is has none, and the agent refuses to format it whatever its policy says.
  const auto approved = [&](const DiskFacts& d) {
    return std::any_of(disks.destroys.begin(), disks.destroys.end(), [&](const Destruction& gone) {
      return gone.group == group && gone.serial == d.serial && gone.wwid == d.wwid;
    });
  };
  for (const auto& d : found->second)
    out.push_back({{"serial", d.serial},
                   {"wwid", d.wwid},
                   {"model", d.model},
                   {"size_bytes", d.size_bytes},
                   {"content_hash", with_content && approved(d) ? d.content_hash : ""},
                   {"policy", word}});
  return out;
}

// Three monitors outvote a lost one; two would stop as soon as either is away.
Json ceph_mons(const Json& members) {
  Json out = Json::array();
  for (size_t i = 0; i < (members.size() >= 3 ? 3 : 1); ++i) out.push_back(members[i]);
  return out;
}

// What only Ceph's steps ask for. Each object store gets a quarter of the node's memory, shared by its disks:
// at most Ceph's default of 4 GiB, at least what Ceph accepts.
void add_ceph(const ContextInput& in, const StorageSpec& s, Json& item) {
  const std::string fsid = ceph_fsid(in.spec.cluster, s.name);
  const Json mons = ceph_mons(item["members"]);
  for (auto& disk : item["disks"]) disk["uuid"] = ceph_osd_uuid(fsid, disk["serial"]);
  const bool is_mon =
      std::any_of(mons.begin(), mons.end(), [&](const Json& m) { return m["name"] == in.node.name; });
  const auto& machines = in.cluster.machines();
  const auto seen = machines.find(in.node.name);
  const int64_t memory = seen == machines.end() ? in.node.hardware.memory_bytes_min
                                                : static_cast<int64_t>(seen->second->memory_bytes);
  const int64_t share = memory / 4 / std::max<int64_t>(1, static_cast<int64_t>(item["disks"].size()));
  item.update({{"fsid", fsid},
               {"mons", mons},
               {"is_mon", is_mon},
               {"member_count", item["members"].size()},
               {"standbys", mons.size() > 1 ? 1 : 0},
               {"min_copies", s.copies - s.copies / 2},
               {"osd_memory", std::clamp<int64_t>(share >> 20, 896, 4096) << 20}});
}

// What the kernel of a node that has it mounted rightly shows, as globs: file system type and source.
std::pair<std::string, std::string> right_mount(const std::string& cluster, const StorageSpec& s,
                                                const Json& leader, bool served_here) {
  const std::string address = leader["address"];
  // Monitors come and go under a mounted file system; its own name stays.
  if (s.engine == "ceph") return {"ceph", fmt::format("muster@{}.{}=/", ceph_fsid(cluster, s.name), s.name)};
  if (s.engine == "beegfs") return {"beegfs", "beegfs_nodev"};
  if (s.engine == "moosefs") return {"fuse*", "*" + address + ":9421"};
  if (served_here) return {s.fs, "/dev/disk/by-label/" + s.name};
  return {"nfs4", address + ":" + s.mount};
}

Json local_storage(const ContextInput& in) {
  Json out = Json::array();
  for (const auto& s : in.spec.storage)
    if (s.engine == "local" && is_member(s, in.node))
      out.push_back({{"name", s.name},
                     {"mount", s.mount},
                     {"level", s.level},
                     {"fs", s.fs},
                     {"disks", disk_list(in.disks, in.node, s.disks, in.with_content)}});
  return out;
}

// Whether the metadata of this section may be begun: the engines' playbooks give a disk its label only once
// there is metadata, so a label says that there was some. Not part of the configuration digest.
bool may_create(const ContextInput& in, const StorageSpec& s) {
  const auto& machines = in.cluster.machines();
  return !in.with_content || std::none_of(in.spec.nodes.begin(), in.spec.nodes.end(), [&](const NodeSpec& n) {
    const auto seen = machines.find(n.name);
    return seen != machines.end() && holds_our_data(in.spec, n, s, *seen->second);
  });
}

// Other members that were last seen with the metadata of a master: what this node has may be behind theirs.
// Not part of the configuration digest.
Json other_masters(const ContextInput& in, const StorageSpec& s) {
  Json out = Json::array();
  if (!in.with_content) return out;
  for (const auto& n : in.spec.nodes) {
    if (n.name == in.node.name || !is_member(s, n)) continue;
    const auto seen = in.cluster.machines().find(n.name);
    if (seen == in.cluster.machines().end()) continue;
    const auto& metadata = seen->second->storage_metadata;
    if (const auto found = metadata.find(s.engine); found != metadata.end() && found->second)
      out.push_back(n.name);
  }
  return out;
}

// Who mounts the section but its leader, who serves it. For the leader only: N nodes need no N lists.
Json clients_of(const Spec& spec, const StorageSpec& s, const SectionNetwork& network,
                const std::string& leader) {
  Json out = Json::array();
  for (const auto& n : spec.nodes)
    if (n.name != leader && mounts(s, n)) out.push_back({{"name", n.name}, {"address", network.address(n)}});
  return out;
}

Json shared_storage(const ContextInput& in, const std::string& engine) {
  Json out = Json::array();
  for (const auto& s : in.spec.storage) {
    if (s.engine == "local" || s.engine == "external" || (!engine.empty() && s.engine != engine)) continue;
    if (!mounts(s, in.node)) continue;
    const SectionNetwork network(in.spec, s);
    Json members = Json::array();
    for (const auto& n : in.spec.nodes)
      if (is_member(s, n)) members.push_back({{"name", n.name}, {"address", network.address(n)}});
    if (members.empty()) continue;
    const NodeSpec& first = *storage_leader(in.spec, s);
    const Json leader = {{"name", first.name}, {"address", network.address(first)}};
    const bool member = is_member(s, in.node), leads = first.name == in.node.name;
    const auto [fstype, source] = right_mount(in.spec.cluster, s, leader, leads);
    out.push_back(
        {{"name", s.name},
         {"engine", s.engine},
         {"external", false},
         {"mount", s.mount},
         {"copies", s.copies},
         {"leader", leader},
         {"level", s.level},
         {"fs", s.fs},
         {"fstype", fstype},
         {"source", source},
         {"is_leader", leads},
         {"is_member", member},
         {"members", members},
         {"address", network.address(in.node)},
         {"network", network.cidr()},
         {"clients", leads ? clients_of(in.spec, s, network, in.node.name) : Json::array()},
         {"disks", member ? disk_list(in.disks, in.node, s.disks, in.with_content) : Json::array()}});
    if (s.engine == "moosefs" || s.engine == "ceph") out.back()["may_create"] = may_create(in, s);
    if (s.engine == "moosefs")
      out.back().update({{"take_over", !s.server.empty()},
                         {"accept_old", in.with_content && in.forced.count(first.name) > 0},
                         {"other_masters", leads ? other_masters(in, s) : Json::array()}});
    if (s.engine == "ceph") add_ceph(in, s, out.back());
  }
  if (engine.empty())
    for (Json& one : external_storage(in.spec, in.node, true)) out.push_back(std::move(one));
  return out;
}

}  // namespace

Json storage_of(const ContextInput& in) {
  return {{"storage_local", local_storage(in)},
          {"storage_shared", shared_storage(in, "")},
          {"storage_moosefs", shared_storage(in, "moosefs")},
          {"storage_nfs", shared_storage(in, "nfs")},
          {"storage_ceph", shared_storage(in, "ceph")},
          {"storage_beegfs", shared_storage(in, "beegfs")},
          {"storage_external", external_storage(in.spec, in.node, false)}};
}

}  // namespace muster

// MooseFS: copies of chunks on the nodes' drives, and one master with the metadata.
#include <cctype>

#include "controller/engines/engine.h"

namespace muster {
namespace {

RightMount moosefs_mount(const MountedSection& of) { return {"fuse*", "*" + of.leader_address + ":9421"}; }

// A chunk can be read and written as long as one copy of it is available.
int moosefs_can_miss(const StorageSpec& s) { return s.copies - 1; }

// One file system per disk, labelled with the end of its serial number, as in agent/storage/moosefs.cc.
std::string disk_label(const DiskFacts& disk) {
  std::string name;
  for (const char c : disk.serial)
    name += isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ? c : '_';
  return "mfs-" + (name.size() > 8 ? name.substr(name.size() - 8) : name);
}

// Other members that were last seen with a master's metadata, which may be newer than this node's. Not part
// of the configuration digest.
Json other_masters(const EngineInput& in, const StorageSpec& s) {
  Json out = Json::array();
  if (!in.with_content) return out;
  for (const auto& n : in.spec.nodes) {
    if (n.name == in.node.name || !is_member(s, n)) continue;
    const auto seen = in.machines.find(n.name);
    if (seen == in.machines.end()) continue;
    const auto& metadata = seen->second->storage_metadata;
    if (const auto found = metadata.find(s.engine); found != metadata.end() && found->second)
      out.push_back(n.name);
  }
  return out;
}

void add_moosefs_context(const EngineInput& in, const StorageSpec& s, Json& item) {
  const std::string leader = item["leader"]["name"].get<std::string>();
  item.update({{"take_over", !s.server.empty()},
               {"accept_old", in.with_content && in.forced.count(leader) > 0},
               {"other_masters", leader == in.node.name ? other_masters(in, s) : Json::array()}});
}

}  // namespace

const StorageEngine kMoosefs = {.name = "moosefs",
                                .playbook = "storage-shared",
                                .reach = Reach::shared,
                                .without = {"level"},
                                .may_name_leader = true,
                                .copies_on_nodes = true,
                                .can_miss = moosefs_can_miss,
                                .by_disk = true,
                                .disk_label = disk_label,
                                .leader_word = "master",
                                .keeps_metadata = true,
                                .metadata_word = "metadata",
                                .leader_reports_health = true,
                                .serving_module = "moosefs_master",
                                .mount = moosefs_mount,
                                .add_context = add_moosefs_context};

}  // namespace muster

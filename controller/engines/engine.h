// Storage engines: everything in which they differ, one description each. Outside of this folder no engine is
// named: spec, planner and status use the description. How to add one: docs/adding.md. Pure.
//
// On the agent's side the engines' step modules are in agent/storage/.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/facts.h"
#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

struct ContextInput;  // controller/plan/context_input.h

// Where the files below a section's mount are.
enum class Reach {
  own,       // on the node's own drives
  shared,    // on drives of nodes of the cluster, mounted by all of them
  of_a_site  // served by machines that muster does not manage
};

// What the kernel of a node shows if it is mounted correctly, as globs; kDiskSource: its own disks of the
// section (base/disk_source.h).
struct RightMount {
  std::string fstype, source;
};
struct MountedSection {
  const std::string& cluster;
  const StorageSpec& section;
  std::string leader_address;
  bool served_here;
};

struct StorageEngine {
  std::string_view name;      // StorageSpec::engine; empty: unknown engine
  std::string_view playbook;  // sets it up
  Reach reach = Reach::own;

  // The spec: keys of a section that it ignores, and its requirements for the others.
  std::array<std::string_view, 5> without = {};
  bool one_server = false;       // its data is on the node that `server` names, and on no other
  bool may_name_leader = false;  // `server` may name which of its nodes leads
  bool copies_on_nodes = false;  // each of `copies` is on a different node
  int fewest_copies = 1;
  // How many of its members may be away while everything can still be read and written; null: none.
  int (*can_miss)(const StorageSpec& section) = nullptr;
  bool once = false;  // in a cluster

  // Disks.
  bool by_disk = false;      // it takes each disk as it is: no array
  bool signs_disks = false;  // what it writes on a disk names its cluster
  // Whether a disk has what it made for this section; null: decided by labels
  // (controller/plan/disk_selection.h).
  bool (*is_ours)(const DiskFacts& disk, const std::string& cluster, const StorageSpec& section) = nullptr;
  // A label that it gives this disk beside those that are named after the section; null: none.
  std::string (*disk_label)(const DiskFacts& disk) = nullptr;

  // Its leader: the first of the nodes with data, or the named one.
  std::string_view leader_word = "";  // name shown to people
  bool keeps_metadata = false;        // without which the data of the others is lost
  std::string_view metadata_word = "";
  bool leader_knows_health = false;      // else each node with data may report the state of the whole
  int quorum = 0;                        // from this many nodes on none of them is special; 0: never
  std::string_view serving_module = "";  // of the step that admits declared nodes; empty: it needs no list
  bool drains = true;                    // a node's data can be moved off it
  std::string_view caution = "";         // shown in every plan

  // Of `Reach::shared`; null for the others.
  RightMount (*mount)(const MountedSection& of) = nullptr;
  // What only its own steps need, added to its element of `storage_shared`; null: nothing.
  void (*add_context)(const ContextInput& in, const StorageSpec& section, Json& item) = nullptr;
};

// An unknown name gets an empty description: the schema has rejected it.
const StorageEngine& engine_of(std::string_view name);
inline const StorageEngine& engine_of(const StorageSpec& section) { return engine_of(section.engine); }
// In order of name.
const std::array<const StorageEngine*, 6>& storage_engines();

extern const StorageEngine kBeegfs, kCeph, kExternal, kLocal, kMoosefs, kNfs;

}  // namespace muster

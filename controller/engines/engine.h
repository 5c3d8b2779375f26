// Storage engines: one description per engine of everything in which engines differ. Code outside this folder
// names no engine. How to add one: docs/adding.md. The agent's step modules are in agent/storage/. No I/O.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/facts.h"
#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// Where a section's files are stored.
enum class Reach {
  own,       // on the node's own drives
  shared,    // on drives of the cluster's nodes, which all mount it
  of_a_site  // on servers that muster does not manage
};

// What a node's kernel shows for a correct mount, as globs; kDiskSource: the node's own disks of the section
// (base/disk_source.h).
struct RightMount {
  std::string fstype, source;
};
struct MountedSection {
  const std::string& cluster;
  const StorageSpec& section;
  std::string leader_address;
  bool served_here;
};

// What an engine may know of the cluster when it adds values for its steps.
struct EngineInput {
  const Spec& spec;
  const NodeSpec& node;                                         // the values are for its steps
  const std::map<std::string, const HardwareFacts*>& machines;  // facts of the nodes that were seen
  bool with_content;                                            // false: leave out what disks contain now
  const std::set<std::string>& forced;                          // PlanRequest::force
};

struct StorageEngine {
  std::string_view name;      // StorageSpec::engine; empty: unknown engine
  std::string_view playbook;  // the playbook that sets it up
  Reach reach = Reach::own;

  // Keys that are not allowed in a section of this engine, and requirements for other keys.
  std::array<std::string_view, 5> without = {};
  bool one_server = false;       // all data is on the node that `server` names
  bool may_name_leader = false;  // `server` may name the node that leads
  bool copies_on_nodes = false;  // each of `copies` is on a different node
  int fewest_copies = 1;
  // Returns how many members may be away while all data can still be read and written; null: none may.
  int (*can_miss)(const StorageSpec& section) = nullptr;
  bool once = false;  // at most one section per cluster

  bool by_disk = false;      // the engine uses each disk separately, without an array
  bool signs_disks = false;  // what the engine writes to a disk identifies the cluster
  // Returns true if the disk holds data that the engine made for this section; null: labels decide
  // (controller/plan/disk_selection.h).
  bool (*is_ours)(const DiskFacts& disk, const std::string& cluster, const StorageSpec& section) = nullptr;
  // Returns a label that the engine gives this disk besides those named after the section; null: none.
  std::string (*disk_label)(const DiskFacts& disk) = nullptr;

  // The leader: the first of the nodes with data, or the node that `server` names.
  std::string_view leader_word = "";  // its title in messages
  bool keeps_metadata = false;        // without its metadata the other nodes' data is lost
  std::string_view metadata_word = "";
  bool leader_reports_health = false;    // false: any node with data can report the engine's health
  int quorum = 0;                        // with this many nodes, any one may be away; 0: never
  std::string_view serving_module = "";  // of the step that lets declared nodes mount; empty: none
  bool drains = true;                    // a node's data can be moved off it
  std::string_view caution = "";         // shown in every plan

  // Returns the correct mount; null unless `reach` is Reach::shared.
  RightMount (*mount)(const MountedSection& of) = nullptr;
  // Adds values that only the engine's own steps need to `item` of `storage_shared`; null: there are none.
  void (*add_context)(const EngineInput& in, const StorageSpec& section, Json& item) = nullptr;
};

// An empty one for an unknown name, which the schema has already rejected.
const StorageEngine& engine_of(std::string_view name);
inline const StorageEngine& engine_of(const StorageSpec& section) { return engine_of(section.engine); }
// Sorted by name.
const std::array<const StorageEngine*, 6>& storage_engines();

extern const StorageEngine kBeegfs, kCeph, kExternal, kLocal, kMoosefs, kNfs;

// Which nodes a storage section is on, and which of them leads it. Pure functions, no I/O.

// "moosefs" -> "storage-shared".
std::string engine_playbook(const std::string& engine);
// True if the section is declared on this node's disks, which determines what they may contain. With engine
// nfs only the server's disks are used; `role` selects the nodes that mount.
bool holds_data(const StorageSpec& storage, const NodeSpec& node);
// True if the section really is on the node's disks: holds_data() and takes_part().
bool is_member(const StorageSpec& storage, const NodeSpec& node);
bool mounts(const StorageSpec& storage, const NodeSpec& node);
// The member that leads the section: its declared server, else the first by name; null without members.
const NodeSpec* storage_leader(const Spec& spec, const StorageSpec& storage);

}  // namespace muster

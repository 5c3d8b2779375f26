#include "controller/plan/disk_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/disk_identity.h"
#include "base/placeholders.h"
#include "controller/engines/engine.h"
#include "controller/spec/hardware.h"

namespace muster {
namespace {

std::string identity(const DiskFacts& d) { return d.serial.empty() ? d.wwid : d.serial; }

std::string people(const DiskFacts& d) {
  return fmt::format("{} ({}, serial {}, {} bytes)", d.name.empty() ? "a disk" : d.name, d.model, d.serial,
                     d.size_bytes);
}

// Describes the disk's content and, if muster wrote a system to the disk, that system's owner.
std::string holds(const DiskFacts& d) {
  const std::string content = d.content.empty() ? (d.blank ? "blank" : "unknown") : d.content;
  if (d.muster_node.empty()) return content;
  return fmt::format(
      "{}; contains the system of node {} of {}{}", content, d.muster_node,
      d.muster_cluster.empty() ? "an unnamed cluster" : "cluster " + d.muster_cluster,
      d.muster_authority.empty() ? "" : ", written by the controller whose CA is " + d.muster_authority);
}

Destruction destruction(const NodeSpec& node, const std::string& group, const DiskFacts& d, std::string why) {
  return {d, node.name, group, d.name, holds(d), d.content_hash, std::move(why)};
}

// "raid0" for "level=raid0"; "" if the key is missing.
std::string signature_word(const std::string& signature, const std::string& key) {
  const auto at = signature.find(" " + key + "=");
  if (at == std::string::npos) return "";
  const std::string rest = signature.substr(at + key.size() + 2);
  return rest.substr(0, rest.find(' '));
}

// Returns the label in a signature line such as "xfs label=DATA" or "mdraid member of gpu01:scratch".
std::string label_of(const std::string& signature) {
  for (const std::string mark : {"label=", "member of "})
    if (const auto at = signature.find(mark); at != std::string::npos) {
      std::string label = signature.substr(at + mark.size());
      label.erase(std::remove(label.begin(), label.end(), '"'), label.end());
      return label.substr(0, label.find_first_of(" ,"));
    }
  return "";
}

// Null: the node holds no section's data on the disks of this group.
const StorageSpec* owner(const Spec& spec, const NodeSpec& node, const std::string& group) {
  for (const auto& s : spec.storage)
    if (s.disks == group && holds_data(s, node)) return &s;
  return nullptr;
}

bool all_same(const std::string& text) { return text.find_first_not_of(text[0]) == std::string::npos; }

// True if a registry makes this kind of WWID unique; other kinds are derived from the serial number.
bool is_assigned(const std::string& wwid) {
  for (const char* prefix : {"eui.", "naa.", "uuid."})
    if (wwid.starts_with(prefix)) return true;
  return false;
}

constexpr const char* kMember = "linux_raid_member";

// True if the whole disk is a member of this section's array and nothing else: the agent makes the section's
// file system only on an array. mdadm does not erase earlier signatures (an ext4 superblock, the start of a
// GPT). Those are ignored unless they have a label or are reported as remains: such data may still be in use.
bool is_own_member(const DiskFacts& disk, const NodeName& node, const StorageSpec& storage) {
  const std::string labelled = std::string(kMember) + " label=";
  size_t members = 0;
  for (const std::string& signature : disk.signatures) {
    if (signature.starts_with(labelled)) {
      // The label may contain spaces; " uuid=" follows it.
      const std::string label = signature.substr(labelled.size(), signature.find(" uuid=") - labelled.size());
      if (!is_own_array(label, storage.name, node)) return false;
      ++members;
    } else if (signature.starts_with(kMember) || signature.starts_with("remains of ") ||
               !label_of(signature).empty()) {
      return false;
    }
  }
  return members == 1;
}

class Chooser {
 public:
  Chooser(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts, const DiskUse& use)
      : spec_(spec), node_(node), facts_(facts), use_(use) {}

  NodeDisks run() {
    for (const auto& [name, group] : node_.disks) select(group);
    if (!out_.refusals.empty()) return std::move(out_);
    if (const auto os = out_.groups.find("os"); os != out_.groups.end())
      out_.os_is_ours = !os->second.empty() && is_own_system(os->second.front());
    for (const auto& [name, group] : node_.disks)
      for (const auto& disk : out_.groups[name])
        name == "os" ? judge_os(group, disk) : judge_data(group, disk);
    for (const auto& [name, group] : node_.disks) check_members(group);
    return std::move(out_);
  }

 private:
  void refuse(const std::string& rule, const std::string& message) {
    out_.refusals.push_back({node_.name, rule, message});
  }

  void select(const DiskGroup& group) {
    auto& found = out_.groups[group.name];
    for (const auto& disk : facts_.disks)
      if (disk_matches(group.match, disk)) found.push_back(disk);
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::pair(identity(a), a.wwid) < std::pair(identity(b), b.wwid);
    });
    if (static_cast<int>(found.size()) != group.match.count) {
      std::string list;
      for (const auto& d : found) list += (list.empty() ? ": " : ", ") + people(d);
      refuse("disk-count", fmt::format("group '{}' declares {} disk{}, but its selector matches {}{}{}",
                                       group.name, group.match.count, group.match.count == 1 ? "" : "s",
                                       found.size(), list, array_hint(group, found.size())));
    }
    for (const auto& disk : found) {
      if (identity(disk).empty())
        refuse("disk-identity",
               people(disk) + " has neither a serial number nor a WWID and cannot be identified");
      if (const auto [it, fresh] = taken_.emplace(identity(disk) + "/" + disk.wwid, group.name); !fresh)
        refuse("disk-overlap",
               people(disk) + " is matched by group '" + it->second + "' and by group '" + group.name + "'");
      // The agent identifies the disk by the same rule.
      else if (const auto again = find_disk(facts_.disks, disk); !again.ok() && !identity(disk).empty())
        refuse("disk-identity", people(disk) + " of group '" + group.name +
                                    "' could not be identified on the node: " + again.error().message);
    }
  }

  // A redundant array continues without a failed drive and must not be recreated: adds a hint.
  std::string array_hint(const DiskGroup& group, size_t found) const {
    const StorageSpec* storage = owner(spec_, node_, group.name);
    if (!storage || !is_redundant(storage->level) || found >= static_cast<size_t>(group.match.count))
      return "";
    return fmt::format(
        ". If a drive failed, the {} of storage '{}' continues without the drive; to replace the drive, see "
        "docs/storage.md",
        storage->level, storage->name);
  }

  // An engine that uses each disk separately derives names from serial numbers: labels, folders and ids.
  void check_names(const DiskGroup& group, const StorageEngine& engine) {
    std::map<std::string, const DiskFacts*> seen;
    for (const auto& disk : out_.groups[group.name]) {
      const std::string name = engine.disk_label ? engine.disk_label(disk) : disk.serial;
      const auto [it, fresh] = seen.emplace(name, &disk);
      if (disk.serial.empty())
        refuse(
            "disk-identity",
            fmt::format("{} of group '{}' has no serial number, which engine {} requires to name its disks",
                        people(disk), group.name, engine.name));
      else if (!fresh)
        refuse("disk-identity",
               fmt::format("{} and {} of group '{}' would both be named {} by engine {}", people(*it->second),
                           people(disk), group.name, name, engine.name));
    }
  }

  // Refuses an array on the disks that differs from the section: the agent never changes an existing array.
  void check_array(const DiskGroup& group, const StorageSpec& storage) {
    const auto& disks = out_.groups[group.name];
    std::set<std::string> uuids, levels, sizes;
    for (const auto& disk : disks)
      for (const auto& signature : disk.signatures) {
        if (!signature.starts_with(kMember)) continue;
        uuids.insert(signature_word(signature, "uuid"));
        if (const std::string level = signature_word(signature, "level"); !level.empty())
          levels.insert(level);
        if (const std::string size = signature_word(signature, "devices"); !size.empty()) sizes.insert(size);
      }
    const std::string who = fmt::format("the disks of group '{}' hold ", group.name);
    if (uuids.size() > 1)
      return refuse("array-mixed", fmt::format("{}{} different arrays named '{}'; select the disks "
                                               "of only one array, or wipe the disks by hand (blkdiscard -z)",
                                               who, uuids.size(), storage.name));
    if (!levels.empty() && levels != std::set<std::string>{storage.level})
      return refuse("array-level",
                    fmt::format("{}array '{}' of level {}, but the spec declares {}; declare the existing "
                                "level, or wipe the disks by hand (blkdiscard -z)",
                                who, storage.name, *levels.begin(), storage.level));
    // The member count of an array does not include spares.
    const bool spares = is_redundant(storage.level) && sizes.size() == 1 &&
                        std::strtoul(sizes.begin()->c_str(), nullptr, 10) < disks.size();
    if (!sizes.empty() && !spares && sizes != std::set<std::string>{std::to_string(disks.size())})
      refuse("array-incomplete", fmt::format("{}array '{}' of {} members, but {} disks are selected", who,
                                             storage.name, *sizes.begin(), disks.size()));
  }

  // A blank drive among members of an array is a replacement, which the operator must add to the array (md):
  // recreating the array would destroy its data.
  void check_members(const DiskGroup& group) {
    const StorageSpec* storage = owner(spec_, node_, group.name);
    if (!storage) return;
    if (engine_of(*storage).by_disk) return check_names(group, engine_of(*storage));
    std::string ours, others;
    for (const auto& disk : out_.groups[group.name]) {
      std::string& list = is_our_data(disk, spec_.cluster, node_.name, *storage) ? ours : others;
      list += (list.empty() ? "" : ", ") + people(disk);
    }
    if (ours.empty()) return;
    if (others.empty()) return check_array(group, *storage);
    if (!is_redundant(storage->level))
      return refuse(
          "array-incomplete",
          fmt::format(
              "the {} of storage '{}' is on {}, but not on {}: its data cannot be read without all of its "
              "disks. If their data may be lost, wipe them by hand (blkdiscard -z) and plan again",
              storage->level, storage->name, ours, others));
    refuse("array-degraded",
           fmt::format("the {} of storage '{}' is on {}, but not on {}: an array that lacks a member is "
                       "never recreated. To replace a drive, see docs/storage.md",
                       storage->level, storage->name, ours, others));
  }

  bool is_own_system(const DiskFacts& disk) const {
    if (!is_os_layout(disk)) return false;
    // Operators choose names, and two sites may choose the same ones; the CA is unique to this controller.
    const auto is_mine = [this](const std::string& noted, const std::string& mine) {
      return noted.empty() ? use_.imaged_here : noted == mine;
    };
    return is_mine(disk.muster_node, node_.name) && is_mine(disk.muster_cluster, spec_.cluster) &&
           is_mine(disk.muster_authority, use_.authority);
  }

  void refuse_read_only(const DiskGroup& group, const DiskFacts& disk) {
    refuse("disk-read-only", fmt::format("{} of group '{}' is read-only: the kernel rejects writes to it "
                                         "(write protection, or a drive at the end of its life)",
                                         people(disk), group.name));
  }

  // Refuses a path of a multipath map, also where the data is the node's own: using it writes, too.
  bool is_behind_map(const DiskGroup& group, const DiskFacts& disk) {
    const std::string why = why_not_past_map(disk);
    if (!why.empty())
      refuse("disk-multipath",
             fmt::format("{} of group '{}' is {}; or select another disk", people(disk), group.name, why));
    return !why.empty();
  }

  // True if nothing can be made on this disk, and refuses it.
  bool is_unusable(const DiskGroup& group, const DiskFacts& disk) {
    if (disk.read_only) refuse_read_only(group, disk);
    if (disk.zoned)
      refuse("disk-zoned",
             fmt::format("{} of group '{}' has host-managed zones (SMR or ZNS), which can be written only in "
                         "order: no partition table, array or file system can be made on it",
                         people(disk), group.name));
    return disk.read_only || disk.zoned;
  }

  void judge_os(const DiskGroup& group, const DiskFacts& disk) {
    if (use_.image.empty()) return;
    if (is_behind_map(group, disk) || is_unusable(group, disk)) return;
    if (out_.os_is_ours) return;
    if ((disk.mounted || disk.is_os_ancestor) && !use_.through_ram)
      return refuse("disk-in-use", people(disk) + " is in use by the running system: " + disk.content);
    if (group.policy == DiskPolicy::keep)
      return refuse("disk-keep", fmt::format("the OS disk {} ({}) would have to be formatted for image {}, "
                                             "but its policy is `keep`; declare `policy: format-if-blank`",
                                             people(disk), holds(disk), use_.image));
    if (group.policy == DiskPolicy::format_if_blank && !disk.blank)
      return refuse(
          "disk-foreign",
          fmt::format("the OS disk {} is not blank ({}) and its policy is `format-if-blank`; if its "
                      "data may be lost, declare `policy: format`",
                      people(disk), holds(disk)));
    out_.destroys.push_back(destruction(node_, group.name, disk, "operating system image " + use_.image));
  }

  // An adopted host was chosen by its address and inspected while it ran, so the data on its disks is its
  // own.
  void check_owner(const StorageSpec& storage, const DiskGroup& group, const DiskFacts& disk) {
    if (engine_of(storage).signs_disks || node_.adopt.declared() || use_.imaged_here || out_.os_is_ours)
      return;
    refuse("disk-foreign",
           fmt::format(
               "{} of group '{}' holds data of storage '{}' ({}), and nothing shows that the data belongs "
               "to this node of this cluster: this controller has never installed {}, and its OS disk does "
               "not belong to cluster {}. To keep the data, install without that storage, then "
               "declare the storage; to discard the data, run `blkdiscard -z` by hand",
               people(disk), group.name, storage.name, disk.content, node_.name, spec_.cluster));
  }

  void judge_data(const DiskGroup& group, const DiskFacts& disk) {
    const StorageSpec* storage = owner(spec_, node_, group.name);
    if (!storage || is_behind_map(group, disk)) return;
    if (is_our_data(disk, spec_.cluster, node_.name, *storage)) return check_owner(*storage, group, disk);
    if (is_unusable(group, disk)) return;
    const std::string why = fmt::format(
        "{} for {}", engine_of(*storage).by_disk ? storage->engine : storage->level, storage->mount);
    if (disk.is_os_ancestor || disk.mounted || is_os_layout(disk))
      return refuse("disk-in-use", fmt::format("{} of group '{}' is in use or holds an operating system: {}",
                                               people(disk), group.name, disk.content));
    if (group.policy == DiskPolicy::keep)
      return refuse("disk-keep", fmt::format("{} of group '{}' ({}) would have to be formatted for {}, but "
                                             "its policy is `keep`; declare `policy: format-if-blank`",
                                             people(disk), group.name, disk.content, why));
    if (group.policy == DiskPolicy::format_if_blank && !disk.blank)
      return refuse("disk-foreign",
                    fmt::format("{} of group '{}' holds {}; its policy is `format-if-blank`", people(disk),
                                group.name, disk.content.empty() ? "something unknown" : disk.content));
    out_.destroys.push_back(destruction(node_, group.name, disk, why));
  }

  const Spec& spec_;
  const NodeSpec& node_;
  const HardwareFacts& facts_;
  const DiskUse& use_;
  std::map<std::string, std::string> taken_;
  NodeDisks out_;
};

}  // namespace

bool is_os_layout(const DiskFacts& disk) {
  std::set<std::string> labels;
  for (const auto& p : disk.partitions) labels.insert(p.label);
  for (const char* wanted : {"muster-esp", "muster-root-a", "muster-root-b", "muster-state"})
    if (!labels.count(wanted)) return false;
  return labels.size() == 4;
}

bool is_our_data(const DiskFacts& disk, const std::string& cluster, const NodeName& node,
                 const StorageSpec& storage) {
  const StorageEngine& engine = engine_of(storage);
  if (engine.is_ours) return engine.is_ours(disk, cluster, storage);
  if (!engine.by_disk && disk.partitions.empty()) return is_own_member(disk, node, storage);
  std::set<std::string> ours;
  if (engine.disk_label) ours.insert(engine.disk_label(disk));
  for (const std::string& base : {storage.name, "muster-" + storage.name, "mfs-" + storage.name}) {
    ours.insert(base);
    ours.insert(base.substr(0, 12));  // XFS labels have at most 12 characters
    ours.insert(node + ":" + base);
    ours.insert("any:" + base);
  }
  bool found = false;
  const auto look = [&](const std::string& label) {
    if (label.empty()) return true;
    // Label that agent/steps/disk/partition.cc gives to a partition and its file system: "scratch-log".
    const bool part = !disk.partitions.empty() && label.starts_with(storage.name + "-");
    found = found || part || ours.count(label) > 0;
    return part || ours.count(label) > 0;
  };
  for (const auto& signature : disk.signatures)
    if (signature.starts_with("remains of ") || !look(label_of(signature)))
      return false;  // agent/disk/disk_probe.h
  for (const auto& p : disk.partitions)
    if (p.label.empty() || !look(p.fs_label) || !look(p.label))
      return false;  // muster labels every partition that it creates
  return found;
}

bool holds_our_data(const Spec& spec, const NodeSpec& node, const StorageSpec& storage,
                    const HardwareFacts& facts) {
  const auto group = node.disks.find(storage.disks);
  if (group == node.disks.end() || !holds_data(storage, node)) return false;
  return std::any_of(facts.disks.begin(), facts.disks.end(), [&](const DiskFacts& disk) {
    return disk_matches(group->second.match, disk) && is_our_data(disk, spec.cluster, node.name, storage);
  });
}

NodeDisks choose_disks(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts,
                       const DiskUse& use) {
  return Chooser(spec, node, facts, use).run();
}

std::string medium_of(const DiskId& disk) {
  const auto& [serial, wwid, model, size] = disk;
  const std::string number = wwid.substr(std::min(wwid.size(), wwid.find('.') + 1));
  const bool distinct = !number.empty() && !all_same(number);
  if (distinct && (is_assigned(wwid) || names_one_thing(serial))) return "WWID " + wwid;
  return names_one_thing(serial) ? fmt::format("model {}, serial {}", model, serial) : "";
}

std::vector<Refusal> refuse_shared(const std::vector<SelectedDisk>& selected) {
  std::map<std::string, std::vector<const SelectedDisk*>> by_medium;
  for (const auto& s : selected)
    if (const std::string medium = medium_of(*s.disk); !medium.empty()) {
      auto& nodes = by_medium[medium];
      if (nodes.empty() || *nodes.back()->node != *s.node)
        nodes.push_back(&s);  // a disk selected twice on one node is refused for that node
    }
  std::vector<Refusal> out;
  for (const auto& [medium, nodes] : by_medium) {
    const auto planned =
        std::find_if(nodes.begin(), nodes.end(), [](const SelectedDisk* s) { return s->planned; });
    if (nodes.size() < 2 || planned == nodes.end()) continue;
    const SelectedDisk& here = **planned;
    const SelectedDisk& other = planned == nodes.begin() ? *nodes[1] : *nodes[0];
    out.push_back(
        {*here.node, "disk-shared",
         fmt::format("{} is selected on this node, and {} on {}{}: both have {}, so they are one disk that "
                     "several nodes see, and each node would write to it. Select it on one node only, for "
                     "instance by 'serials'. If the disk was moved, remove its former node from the spec, "
                     "run `muster node rm`, and declare the node again",
                     people(*here.disk), people(*other.disk), *other.node,
                     nodes.size() > 2 ? fmt::format(" and {} more nodes", nodes.size() - 2) : "", medium)});
  }
  return out;
}

}  // namespace muster

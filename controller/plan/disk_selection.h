// Which disks a node's groups mean, and whether they may be written. Pure over facts. The one place that
// decides it.
//
// A disk is selected by serial, wwid, model, size and transport, never by its kernel name. A selector that
// matches a different number of disks than declared is refused, never narrowed. Remote disks (NVMe over
// fabrics, iSCSI, Fibre Channel, SRP) and USB are never selected. One disk that two nodes see (a shared
// enclosure) may be selected on one of them only. `ours` recognises what muster itself made for this node of
// this cluster: its own layout on the OS disk, the RAID or file system of the same storage section, MooseFS
// data or the Ceph object store of the same section. Such a disk is used again, not destroyed. A second
// cluster may have nodes and sections of the same names, and a second controller a cluster of the same name:
// the OS disk identifies its owner by node, cluster and the fingerprint of the controller's CA; RAID and file
// systems do not, and count as this node's if its OS disk does, or if the controller imaged this machine
// before. Otherwise they are refused, whatever the policy.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/plan/plan.h"
#include "controller/plan/planner_input.h"
#include "controller/spec/spec.h"

namespace muster {

bool disk_matches(const DiskMatch& match, const DiskFacts& disk);
// GPT with muster-esp, muster-root-a, muster-root-b and muster-state. Of any node.
bool is_os_layout(const DiskFacts& disk);
// Made by muster for this storage section on a node of this name. Only some engines' says of which cluster.
bool is_our_data(const DiskFacts& disk, const std::string& cluster, const std::string& node,
                 const StorageSpec& storage);

// A disk that the section would use on this node holds data that muster made for it.
bool holds_our_data(const Spec& spec, const NodeSpec& node, const StorageSpec& storage,
                    const HardwareFacts& facts);

struct NodeDisks {
  std::map<std::string, std::vector<DiskFacts>> groups;  // by group, each in order of serial
  bool os_is_ours = false;
  std::vector<Destruction> destroys;
  std::vector<Refusal> refusals;
};
struct DiskUse {
  bool through_ram = false;  // the plan writes from the RAM system: what the installed system has mounted on
                             // its OS disk forbids no image
  bool imaged_here =
      false;  // this machine has run an image of this controller: what does not say whose it is, is its own
  std::string image;      // what is written to the OS disk; empty: the OS disk stays as it is
  std::string authority;  // fingerprint of this controller's CA
};
NodeDisks choose_disks(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts,
                       const DiskUse& use);

// The identity of a disk, the same on every node that sees it; "" if it has none (a serial number that its
// maker gave to all drives).
std::string medium_of(const std::string& serial, const std::string& wwid, const std::string& model);

// A disk that a node's groups select; valid as long as its node and facts.
struct SelectedDisk {
  const std::string* node;
  const DiskFacts* disk;
  bool planned;  // by a node of the current plan; else by a different node of the spec
};
// One refusal (disk-shared) for each disk that several nodes select, at least one of them planned.
std::vector<Refusal> refuse_shared(const std::vector<SelectedDisk>& selected);

}  // namespace muster

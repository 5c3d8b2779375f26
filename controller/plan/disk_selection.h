// Decides which disks a node's disk groups select, and whether they may be written; no other code decides
// this. Pure functions over facts, no I/O.
// A disk is selected by serial, wwid, model, size and transport, never by its kernel name. A selector that
// matches more or fewer disks than declared is refused; muster never picks some of the matches. Remote disks
// (NVMe over fabrics, iSCSI, Fibre Channel, SRP) and USB are never selected. A disk that dm-multipath holds
// is refused for every use, since it is one path of a drive. One disk that two nodes see (a
// shared enclosure) may be selected on one of them only. The policy `ours` recognises what muster itself made
// for this node of this cluster: its own layout on the OS disk, the RAID or file system of the same storage
// section, MooseFS data or the Ceph object store of the same section. Such a disk is reused, not destroyed. A
// second cluster may have nodes and sections of the same names, and a second controller a cluster of the same
// name: the OS disk identifies its owner by node, cluster and the fingerprint of the controller's CA; RAID
// and file systems do not, and count as this node's if its OS disk does, or if the controller imaged this
// machine before. Otherwise they are refused, whatever the policy.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/names.h"
#include "controller/plan/plan.h"
#include "controller/plan/planner_input.h"
#include "controller/spec/hardware.h"
#include "controller/spec/spec.h"

namespace muster {

// True if the disk has a GPT with muster-esp, muster-root-a, muster-root-b and muster-state, of any node.
bool is_os_layout(const DiskFacts& disk);
// True if muster made the data for this section on a node of this name. Only some engines record the cluster.
bool is_our_data(const DiskFacts& disk, const std::string& cluster, const NodeName& node,
                 const StorageSpec& storage);

// True if a disk that the section would use on this node holds data that muster made for the section.
bool holds_our_data(const Spec& spec, const NodeSpec& node, const StorageSpec& storage,
                    const HardwareFacts& facts);

struct NodeDisks {
  std::map<std::string, std::vector<DiskFacts>> groups;  // group -> its disks, sorted by serial
  bool os_is_ours = false;
  std::vector<Destruction> destroys;
  std::vector<Refusal> refusals;
};
struct DiskUse {
  bool through_ram = false;  // the plan writes from the RAM system: the installed system's mounts on its OS
                             // disk do not prevent writing the image
  bool imaged_here =
      false;  // this controller imaged this machine before: its disks' unsigned data counts as this node's
  std::string image;      // image to write to the OS disk; empty: the OS disk stays as it is
  std::string authority;  // fingerprint of this controller's CA
};
NodeDisks choose_disks(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts,
                       const DiskUse& use);

// The same on every node that sees the disk; "" if it has none (a serial number given to all drives).
std::string medium_of(const DiskId& disk);

// A disk that a node's groups select. The pointers refer to the node's name and facts.
struct SelectedDisk {
  const NodeName* node;
  const DiskFacts* disk;
  bool planned;  // the node is in this plan; false: it is only in the spec
};
// Returns a refusal (disk-shared) for each disk that several nodes select, at least one of them planned.
std::vector<Refusal> refuse_shared(const std::vector<SelectedDisk>& selected);

}  // namespace muster

// HardwareFacts: what one machine reports about itself. The contract between the agent (which collects it),
// the planner (which selects disks from it), the inventory (which stores it with its age) and acceptance
// (which compares it with what the spec declares).
//
// Facts are observations, never desired state. A field that the agent could not read keeps its default
// (empty, 0, false): "unknown". Strings come from hardware and must be escaped. Kernel names (nvme0n1, eth0)
// are for display only: nothing is selected by them. Thread safety: plain value types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/disk_id.h"
#include "base/left_out.h"
#include "base/result.h"

namespace muster {

class Json;

struct SystemFacts {  // SMBIOS
  std::string vendor = {};
  std::string product = {};
  std::string serial = {};
  std::string uuid = {};  // lower case
};

struct CpuFacts {
  int count = 0;  // logical processors online
  int sockets = 0;
  std::string model = {};
};

struct GpuFacts {
  std::string model = {};
  std::string uuid = {};
  std::string serial = {};
  std::string pci = {};  // "0000:17:00.0"
  uint64_t memory_bytes = 0;
  std::string bus_speed = {};  // trained PCIe link, "32.0 GT/s x16"
  bool simulated = false;      // a lab's stand-in (base/standin.h), not a real GPU
  std::string pci_path = {};   // its path from the root complex (base/rail_choice.h)
  bool display = false;        // a display card (PCI class 0x0300) on which no compute driver runs
};

struct NicFacts {
  std::string name = {};   // kernel name
  std::string mac = {};    // lower case, colons; for a port of a bond its own, not the bond's
  int64_t speed_mbps = 0;  // negotiated; 0 = no link or unknown
  std::string driver = {};
  std::string pci = {};
  bool link_up = false;
  std::string pci_path = {};  // its path from the root complex (base/rail_choice.h); also empty on USB
  // Why the MAC does not identify the machine: "usb", "virtual-function"; only from older agents, which
  // listed such ports. Empty: it may identify it, or the agent is still older.
  std::string address_kind = {};
};

struct PartitionFacts {
  std::string name = {};   // kernel name
  std::string label = {};  // GPT partition name, else empty
  std::string fs_type =
      {};  // result of a probe of its content: "ext4", "linux_raid_member", "" = not recognized
  std::string fs_label = {};
  uint64_t start_bytes = 0;
  uint64_t size_bytes = 0;
};

struct DiskFacts : DiskId {
  std::string transport = {};  // nvme | sata | sas | virtio | usb | nvme-tcp | fc | srp | iscsi | unknown | …
  // For display.
  std::string name = {};          // kernel name
  std::string pcie_address = {};  // "0000:41:00.0"
  std::string bus_speed = {};     // trained link, "16.0 GT/s x4"
  uint32_t logical_block = 0;     // bytes; 0 = unknown
  // What is on it now. The plan shows `content` and is bound to `content_hash`; the agent probes the disk
  // again before it writes.
  std::string content = {};       // one line: "GPT, 3 partitions: esp vfat, root ext4", "blank"
  std::string content_hash = {};  // "sha256:<hex>" over everything the probe looked at
  bool blank = false;             // the probe read the disk and found no signature of any kind
  std::vector<PartitionFacts> partitions = {};
  std::vector<std::string> signatures = {};  // "mdraid member of gpu01:scratch", "xfs label=DATA"
  std::string multipath = {};  // the dm-multipath map that holds it, "mpatha"; empty: none, or an older agent
  bool mounted =
      false;  // the disk, a partition or a device on top of it is mounted, swap, or otherwise in use
  bool read_only = false;       // the kernel rejects writes: the disk is write-protected, or it is an SSD
                                // that is worn out and has put itself into
                                // read-only mode
  bool zoned = false;           // host-managed zones (SMR, ZNS): no file system or array here can use it
  bool is_os_ancestor = false;  // holds /, /boot, the ESP or swap of the running system
  // The owner of the muster system on this disk: cluster, node, and the fingerprint of the controller's CA.
  // All empty: not written by muster, or the agent is too old to report it. Only cluster or authority empty:
  // written by a version that did not record it.
  std::string muster_cluster = {}, muster_node = {}, muster_authority = {};
};

// One root slot of muster's layout, as recorded in the marker on its disk.
struct SlotFacts {
  std::string image, digest;  // of the last write
  std::string stage;          // "" (nothing was written) | writing | written
  std::string address;        // the node address configured in it, "10.20.0.11/24"
  bool trial = false;         // its system rolls back an uncommitted boot by itself
  std::string fault = {};     // why it cannot be started; "": nothing was found, or it is the running one
};
// The slots of the running system. `running` empty: it was not started from a slot, or the agent is too old
// to report it.
struct BootFacts {
  std::string running;   // "a" | "b": the slot that holds /
  std::string standing;  // the default slot, started unless a one-time boot is requested; "": unknown
  std::string no_trial;  // why a one-time boot of the other slot is not possible; "": it is
  std::map<std::string, SlotFacts> slots;
  // Bytes that kernel and initrd of the other slot may have on the EFI system partition; 0: unknown.
  uint64_t room = 0;

  bool empty() const { return running.empty(); }
};

// The part of the machine that the agent may use (read by agent/facts/node_share.h). `words` empty: all of
// it, or the agent is too old to report it.
struct ShareFacts {
  double cores = 0;  // logical processors; fractional for a CPU time quota
  int of_cores = 0;
  std::string cores_by = {};            // "cpuset", "affinity", "cpu.max"; empty: all
  std::vector<std::string> words = {};  // "32 of 128 cores (cpuset)"

  bool empty() const { return words.empty(); }
};

// A library that GPU programs load at run time, where such a program would find it.
struct LibraryFacts {
  std::string name = {};     // "libcublasLt.so.12"
  std::string version = {};  // "12.4.5.8"; empty: neither its file nor a package beside it shows the version
  std::string path = {};
};

struct HardwareFacts {
  SystemFacts system = {};
  CpuFacts cpus = {};
  uint64_t memory_bytes = 0;         // installed if SMBIOS reports it, else what the kernel manages
  uint64_t memory_usable_bytes = 0;  // the part usable by programs (MemTotal); 0: an older agent
  std::vector<GpuFacts> gpus = {};
  std::vector<NicFacts> nics = {};    // physical ports only, sorted by PCI address then name
  std::vector<DiskFacts> disks = {};  // whole disks only, sorted by serial then name
  // What is not counted, or, for a disk in `disks`, not measured; empty also from an older agent.
  std::vector<LeftOut> left_out = {};
  std::string firmware = {};  // "EDK II 2022.11"
  bool uefi = false;
  std::string kernel = {};  // uname -r
  std::string os = {};      // PRETTY_NAME; in the RAM system, its own name
  std::string os_id = {};   // ID of /etc/os-release: "ubuntu"; also empty from an older agent
  // Engine of shared storage ("moosefs", "ceph") -> whether its metadata (of a master or monitor) is stored
  // in this system. No entry means unknown: this system does not have the engine, or the facts come from the
  // RAM system.
  std::map<std::string, bool> storage_metadata = {};
  // What this system selects by a label: "LABEL=scratch /scratch", "root=LABEL=x /" (host/by_label.h).
  std::vector<std::string> by_label = {};
  BootFacts boot = {};
  // Versions and settings that should be equal on equal machines: "CPU governor" -> "performance". A property
  // that could not be read has no entry.
  std::map<std::string, std::string> properties = {};
  std::string machine_id = {};  // identifies the installation: 32 hexadecimal digits; empty: unknown
  ShareFacts share = {};
  // cuBLASLt of each major version, and NCCL: the first of each that the search finds (sys/library_places.h).
  // Only of machines with NVIDIA's GPUs; empty also from an older agent.
  std::vector<LibraryFacts> gpu_libraries = {};
};

// Returns the share as one text; "" for a whole machine. Measurements are compared only within equal shares.
std::string share_of(const HardwareFacts& facts);

// True if it has GPUs and all of them are a lab's stand-ins: measurements on them are void.
bool has_simulated_gpus(const HardwareFacts& facts);

// Returns the number of GPUs without display cards on which no compute driver runs.
size_t compute_gpus(const HardwareFacts& facts);

// True for a disk inside the machine. Network, removable and unknown disks are never written to.
bool is_local_transport(const std::string& transport);

// Why nothing is written to this disk, whatever is on it: it is one path of a drive, and dm-multipath, which
// holds it, would not see the write. Names the map. Empty: no map holds it.
std::string why_not_past_map(const DiskFacts& disk);

Json to_json(const DiskFacts& disk);
Json to_json(const HardwareFacts& facts);
// Missing keys keep their defaults, unknown ones are ignored (the peer may be older or newer). Code::invalid:
// a wrong type; names its path. Code::denied: a reference to a secret (secret:NAME).
Result<DiskFacts> disk_facts_from_json(const Json& json, const std::string& path);
Result<HardwareFacts> hardware_facts_from_json(const Json& json);

}  // namespace muster

#include "agent/disk/disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "agent/disk/block_device.h"
#include "agent/disk/disk_probe.h"
#include "base/disk_source.h"
#include "base/pci_address.h"
#include "host/real_drives.h"

namespace muster {
namespace {

using Names = std::set<std::string>;

uint64_t number(const std::string& text) {
  uint64_t n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    n = n * 10 + static_cast<uint64_t>(c - '0');
  }
  return n;
}

bool is_system_mount(const std::string& at) {
  return at == "/" || at == "swap" || at == "/boot" || at.starts_with("/boot/") || at == "/efi" ||
         at == "/usr" || at == "/state";
}

struct Uses {
  // kernel name -> mount point, "swap", or "btrfs" where no mount point is known
  std::multimap<std::string, std::string> at;
  bool zfs = false, zfs_system = false;  // a ZFS pool may be in use; a pool contains the running system
};

// For "/dev/nvme0n1p2", or a link such as /dev/mapper/root -> ../dm-0; "" if the source is not a device.
std::string device_name(const Files& files, const std::string& source) {
  if (!source.starts_with("/dev/")) return "";
  const std::string path = files.read_link(source).value_or(source);
  return path.substr(path.rfind('/') + 1);
}

// For btrfs and ZFS, mountinfo does not show a disk's device number: for btrfs it shows the source (one of
// several devices), for ZFS the pool.
void add_mounts(const Files& files, Uses& out) {
  std::map<std::string, std::string> name_of;  // "259:1" -> nvme0n1p1
  for (const auto& name : files.list("/sys/class/block"))
    name_of[files.read_line("/sys/class/block/" + name + "/dev")] = name;
  std::istringstream mounts(files.read("/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, at, type, sources;
    words >> id >> parent >> device >> root >> at;
    if (const auto it = name_of.find(device); it != name_of.end()) out.at.emplace(it->second, at);
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream rest(line.substr(dash + 3));
    rest >> type >> sources;
    if (type == "zfs") out.zfs = true, out.zfs_system = out.zfs_system || is_system_mount(at);
    std::istringstream each(sources);
    for (std::string source; std::getline(each, source, ':');)  // bcachefs names all its devices
      if (const std::string name = device_name(files, source); !name.empty()) out.at.emplace(name, at);
  }
}

// /sys lists all devices of a mounted btrfs; mountinfo names only one.
void add_btrfs(const Files& files, Uses& out) {
  for (const auto& uuid : files.list("/sys/fs/btrfs")) {
    const auto members = files.list("/sys/fs/btrfs/" + uuid + "/devices");
    Names places;
    for (const auto& name : members)
      for (auto [it, end] = out.at.equal_range(name); it != end; ++it) places.insert(it->second);
    if (places.empty()) places.insert("btrfs");
    for (const auto& name : members)
      for (const auto& at : places) out.at.emplace(name, at);
  }
}

Uses uses(const Files& files) {
  Uses out;
  add_mounts(files, out);
  std::istringstream swaps(files.read("/proc/swaps").value_or(""));
  for (std::string line; std::getline(swaps, line);)
    if (line.starts_with("/dev/"))
      out.at.emplace(device_name(files, line.substr(0, line.find_first_of(" \t"))), "swap");
  add_btrfs(files, out);
  out.zfs = out.zfs || files.exists("/proc/spl");
  return out;
}

// Adds the disk itself, its partitions, and everything on top of them (RAID, LVM, dm-crypt), by kernel name.
void add_family(const Files& files, const std::string& name, Names& out) {
  if (!out.insert(name).second) return;
  const std::string folder = "/sys/class/block/" + name;
  for (const auto& entry : files.list(folder))
    if (files.exists(folder + "/" + entry + "/partition")) add_family(files, entry, out);
  for (const auto& holder : files.list(folder + "/holders")) add_family(files, holder, out);
}

void read_use(const Files& files, const Uses& used, DiskFacts& disk) {
  Names family;
  add_family(files, disk.name, family);
  for (const auto& name : family) {
    for (auto [it, end] = used.at.equal_range(name); it != end; ++it) {
      disk.mounted = true;
      disk.is_os_ancestor = disk.is_os_ancestor || is_system_mount(it->second);
    }
    // An assembled RAID or volume counts as use even if nothing on it is mounted.
    if (!files.list("/sys/class/block/" + name + "/holders").empty()) disk.mounted = true;
  }
}

// The kernel does not show the disks of a ZFS pool: while ZFS is loaded, each member disk counts as in use.
void read_pool_use(const Uses& used, const DiskContent& content, DiskFacts& disk) {
  const bool member =
      std::any_of(content.signatures.begin(), content.signatures.end(),
                  [](const Signature& s) { return s.type.find("zfs_member") != std::string::npos; });
  if (!used.zfs || !member) return;
  disk.mounted = true;
  disk.is_os_ancestor = disk.is_os_ancestor || used.zfs_system;
}

std::string scsi_serial(const Files& files, const std::string& folder) {
  const std::string page = files.read(folder + "/device/vpd_pg80").value_or("");
  return page.size() > 4 ? hardware_text(page.substr(4)) : "";
}

void read_bus(const Files& files, DiskFacts& disk) {
  const std::string path = "/sys/block/" + disk.name;
  std::string link = files.read_link(path).value_or("");
  // With multipath the disk itself has no PCI path; its controllers do.
  for (const auto& entry : files.list(path + "/device"))
    if (link.find("/nvme-subsystem/") != std::string::npos && entry.starts_with("nvme"))
      link = files.read_link(path + "/device/" + entry).value_or(link);
  std::istringstream parts(link);
  for (std::string part; std::getline(parts, part, '/');)
    if (is_pci_address(part)) disk.pcie_address = part;
  if (disk.pcie_address.empty()) return;
  const std::string folder = "/sys/bus/pci/devices/" + disk.pcie_address;
  std::string speed = files.read_line(folder + "/current_link_speed");
  speed = speed.substr(0, speed.find(" PCIe"));
  const std::string width = files.read_line(folder + "/current_link_width");
  if (!speed.empty() && !width.empty()) disk.bus_speed = speed + " x" + width;
}

DiskFacts read_identity(const Files& files, const DrivePart& part) {
  const std::string &name = part.name, folder = "/sys/block/" + name;
  DiskFacts d;
  d.name = name;
  d.transport = part.transport;
  d.zoned = part.why == Why::zoned;
  d.multipath = hardware_text(part.map);
  d.size_bytes = number(files.read_line(folder + "/size")) * 512;
  d.read_only = files.read_line(folder + "/ro") == "1";
  d.logical_block = static_cast<uint32_t>(number(files.read_line(folder + "/queue/logical_block_size")));
  d.wwid = hardware_text(files.read_line(folder + "/wwid"));
  if (d.wwid.empty()) d.wwid = hardware_text(files.read_line(folder + "/device/wwid"));
  d.model = hardware_text(files.read_line(folder + "/device/model"));
  if (name.starts_with("nvme"))
    d.serial = hardware_text(files.read_line(folder + "/device/serial"));
  else if (name.starts_with("vd"))
    d.serial = hardware_text(files.read_line(folder + "/serial"));
  else
    d.serial = scsi_serial(files, folder);
  read_bus(files, d);
  return d;
}

void add_partitions(const Files& files, const DiskContent& content, DiskFacts& disk) {
  std::map<uint64_t, std::string> names;  // start -> kernel name
  const std::string folder = "/sys/block/" + disk.name;
  for (const auto& entry : files.list(folder))
    if (files.exists(folder + "/" + entry + "/partition"))
      names[number(files.read_line(folder + "/" + entry + "/start")) * 512] = entry;
  const auto add = [&](const std::string& label, uint64_t start, uint64_t size) {
    PartitionFacts facts{names.count(start) ? names[start] : "", label, "", "", start, size};
    for (const auto& s : content.signatures)
      if (s.start == start && facts.fs_type.empty() && s.type != kUnknownData)
        facts.fs_type = s.type, facts.fs_label = s.label;
    disk.partitions.push_back(std::move(facts));
  };
  for (const auto& p : content.gpt.partitions) add(p.name, p.start, p.size);
  if (content.mbr)
    for (const auto& p : content.mbr->partitions) add("", p.start, p.size);
}

Result<DiskContent> content_of(const Files& files, const DiskFacts& disk) {
  TRY(const auto device, BlockDevice::open(files.real("/dev/" + disk.name), BlockDevice::Access::read));
  return probe_disk(device);
}

void read_content(const Files& files, const Uses& used, DiskFacts& disk) {
  const auto content = content_of(files, disk);
  if (!content) {
    disk.content = "unreadable: " + content.error().message;
    return;
  }
  disk.content = content->summary + (disk.read_only ? ", read-only" : "");
  disk.content_hash = content->hash;
  disk.blank = content->blank;
  for (const auto& s : content->signatures)
    disk.signatures.push_back(s.type + (s.label.empty() ? "" : " label=" + s.label) +
                              (s.uuid.empty() ? "" : " uuid=" + s.uuid) +
                              (s.detail.empty() ? "" : " " + s.detail));
  add_partitions(files, *content, disk);
  read_pool_use(used, *content, disk);
  if (!content->marker) return;
  disk.muster_authority = hardware_text(content->marker->authority);
  disk.muster_cluster = hardware_text(content->marker->cluster);
  disk.muster_node = hardware_text(content->marker->node);
}

std::vector<DiskFacts> scan(const Files& files, bool content) {
  std::vector<DiskFacts> out;
  const Uses used = uses(files);
  for (const auto& part : drive_devices(files)) {
    if (!part.is_disk()) continue;
    DiskFacts disk = read_identity(files, part);
    if (disk.size_bytes == 0) continue;  // card reader without a card
    read_use(files, used, disk);
    if (content)
      read_content(files, used, disk);
    else if (used.zfs)
      if (const auto found = content_of(files, disk)) read_pool_use(used, *found, disk);
    out.push_back(std::move(disk));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return std::tie(a.serial, a.name) < std::tie(b.serial, b.name);
  });
  return out;
}

}  // namespace

std::vector<DiskFacts> scan_disks(const Files& files) { return scan(files, true); }
std::vector<DiskFacts> scan_identities(const Files& files) { return scan(files, false); }

}  // namespace muster

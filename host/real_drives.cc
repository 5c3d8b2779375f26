#include "host/real_drives.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/split.h"

namespace muster {
namespace {

const std::string kDisks = "/sys/block/";

// The kernel's names for drives. Any other device with hardware may be one, too, of a driver that is rare.
constexpr const char* kDriveNames[] = {"nvme", "sd", "vd", "xvd", "hd", "mmcblk", "dasd", "pmem"};
// Names of what is no drive.
constexpr std::pair<const char*, Why> kOtherNames[] = {
    {"sr", Why::optical},       {"fd", Why::floppy},      {"nbd", Why::network_block},
    {"rbd", Why::over_network}, {"mtdblock", Why::flash}, {"pmem", Why::memory}};

Why why_of_name(const std::string& name) {
  if (name.starts_with("mmcblk") && (has(name, "boot") || has(name, "rpmb"))) return Why::boot_area;
  for (const auto& [start, why] : kOtherNames)
    if (name.starts_with(start)) return why;
  return Why::real;
}

std::string nvme_transport(const Files& files, const std::string& folder, const std::string& name) {
  std::string t = files.read_line(folder + "/device/transport");
  // With multipath, sysfs lists the disk below a subsystem, whose controllers show the transport.
  for (const auto& entry : files.list(folder + "/device"))
    if (t.empty() && entry.starts_with("nvme"))
      t = files.read_line(folder + "/device/" + entry + "/transport");
  if (t.empty()) t = files.read_line("/sys/class/nvme/" + name.substr(0, name.find('n', 4)) + "/transport");
  return t == "pcie" ? "nvme" : t.empty() ? "nvme-unknown" : "nvme-" + t;
}

// A SCSI disk reached over a network looks like a local one, except for its path or, if that shows nothing
// (SRP), its host adapter.
std::string scsi_transport(const Files& files, const std::string& folder) {
  const std::string link = files.read_link(folder).value_or("");
  if (has(link, "/usb")) return "usb";
  if (has(link, "/rport-")) return "fc";
  if (has(link, "/session")) return "iscsi";
  const size_t at = link.find("/host");
  const std::string host = at == std::string::npos ? "" : link.substr(at, link.find('/', at + 1) - at);
  for (const std::string kind : {"fc", "iscsi", "srp"})
    if (!host.empty() && files.exists("/sys/class/" + kind + "_host" + host)) return kind;
  return files.read_line(folder + "/device/vendor") == "ATA" ? "sata" : "sas";
}

std::string transport_of(const Files& files, const std::string& name) {
  const std::string folder = kDisks + name;
  if (name.starts_with("nvme")) return nvme_transport(files, folder, name);
  if (name.starts_with("vd")) return "virtio";
  return name.starts_with("sd") ? scsi_transport(files, folder) : "unknown";  // mmcblk, pmem, rbd ...
}

bool is_over_network(const std::string& transport) {
  return transport == "fc" || transport == "iscsi" || transport == "srp" || transport == "nvme-tcp" ||
         transport == "nvme-rdma" || transport == "nvme-fc" || transport == "nvme-loop";
}

// The kernel name of the dm-multipath map that holds it; "": none.
std::string multipath_device(const Files& files, const std::string& name) {
  for (const auto& holder : files.list(kDisks + name + "/holders"))
    if (files.read_line(kDisks + holder + "/dm/uuid").starts_with("mpath-")) return holder;
  return "";
}

std::string multipath_map(const Files& files, const std::string& name) {
  const std::string device = multipath_device(files, name);
  return device.empty() ? "" : files.read_line(kDisks + device + "/dm/name", device);
}

// dm-multipath joins the paths to a drive: the first of them stands for the drive.
bool is_later_path(const Files& files, const std::string& name) {
  const std::string device = multipath_device(files, name);
  if (device.empty()) return false;
  const auto paths = files.list(kDisks + device + "/slaves");
  return !paths.empty() && paths.front() != name;
}

// The types of SCSI devices (SPC-5, "peripheral device type").
Why why_of_scsi(const Files& files, const std::string& folder) {
  const std::string type = files.read_line(folder + "/device/type");
  if (type == "5") return Why::optical;
  return type == "20" ? Why::zoned : Why::real;  // 0x14
}

// The kernel's `removable` flag alone may also mark a drive in a hot-swap bay or a RAID controller's volume
// (aacraid), so it counts only on USB.
Why why_no_drive(const Files& files, const std::string& name, const std::string& transport) {
  const std::string folder = kDisks + name;
  if (const Why kind = why_of_name(name); kind != Why::real) return kind;
  if (const Why type = why_of_scsi(files, folder); type == Why::optical) return type;
  if (files.read_line(folder + "/hidden") == "1") return Why::other_path;  // nvme0c0n1, without a device file
  if (name.starts_with("mmcblk") && files.read_line(folder + "/device/type") == "SD") return Why::removable;
  if (transport == "usb") return files.read_line(folder + "/removable") == "1" ? Why::removable : Why::on_usb;
  if (is_over_network(transport)) return Why::over_network;
  if (files.read_line(folder + "/size") == "0") return Why::no_medium;
  if (is_later_path(files, name)) return Why::other_path;
  if (files.read_line(folder + "/queue/zoned") == "host-managed") return Why::zoned;
  return why_of_scsi(files, folder);
}

}  // namespace

bool DrivePart::is_disk() const {
  switch (why) {
    case Why::real:
    case Why::on_usb:
    case Why::removable:
    case Why::over_network:
    case Why::memory:
    case Why::zoned:
      return true;
    default:
      return false;
  }
}

std::vector<DrivePart> drive_devices(const Files& files) {
  std::vector<DrivePart> out;
  for (const auto& name : files.list(kDisks)) {
    if (!files.exists(kDisks + name + "/device")) continue;
    DrivePart part{name, transport_of(files, name), multipath_map(files, name)};
    part.why = why_no_drive(files, name, part.transport);
    out.push_back(std::move(part));
  }
  return out;
}

std::vector<std::string> real_drives(const Files& files) {
  std::vector<std::string> out;
  for (const auto& part : drive_devices(files))
    if (part.why == Why::real) out.push_back(part.name);
  return out;
}

bool is_local_nvme(const Files& files, const std::string& controller) {
  const std::string transport = files.read_line("/sys/class/nvme/" + controller + "/transport", "pcie");
  return transport == "pcie" || transport == "apple-nvme";
}

bool is_never_searched(const std::string& name) {
  if (name.starts_with("ram") || name.starts_with("zram")) return true;
  const Why why = why_of_name(name);
  return why == Why::optical || why == Why::floppy || why == Why::network_block;
}

bool is_drive_of_machine(const Files& files, const std::string& name) {
  if (std::none_of(std::begin(kDriveNames), std::end(kDriveNames),
                   [&](const char* start) { return name.starts_with(start); }))
    return false;
  switch (why_no_drive(files, name, transport_of(files, name))) {
    case Why::real:
    case Why::other_path:
    case Why::zoned:
    case Why::memory:
    case Why::no_medium:
      return true;
    default:
      return false;
  }
}

}  // namespace muster

// qemu_args: builds the QEMU command line of a LabNode. Stateless functions, no I/O.
//
// Machine: q35, OVMF UEFI with the node's own variables, an iPXE ROM on the provisioning NIC only, the boot
// drive on the root bus, data drives and other NICs each behind a pcie-root-port (which has ACS, unlike the
// emulated switch), and an emulated IOMMU. NICs come before drives, so that adding a drive does not renumber
// them. The guest sees NVMe drives as "QEMU NVMe Ctrl" (fixed in QEMU), with serials set by the lab.
#pragma once

#include <string>
#include <vector>

#include "lab/lab_dir.h"
#include "lab/lab_spec.h"

namespace muster::lab {

enum class Accel { tcg, kvm };
std::string_view to_string(Accel accel);

enum class BootFirst { disk, network };

struct QemuHost {
  Accel accel = Accel::tcg;
  std::string firmware = "/usr/share/OVMF/OVMF_CODE_4M.fd";
  std::string variables = "/usr/share/OVMF/OVMF_VARS_4M.fd";  // template, copied per node
};

std::string tap_name(const LabNode& node,
                     const std::string& network = kProvisioning);  // "tap3", "tap3-rail0"
std::string nic_device_id(const std::string& network);             // QEMU device id: "net0", "net-rail0"
std::string drive_file(const LabDir& dir, const LabNode& node, const LabDrive& drive);
// Returns the id of the drive's root port; empty for the boot drive, which is on the root bus.
std::string drive_port_id(const LabNode& node, const LabDrive& drive);
std::string drive_device_id(const LabDrive& drive);  // QEMU device id: "nvme-os"
inline const char* kNicId = "net0";

std::vector<std::string> qemu_args(const LabDir& dir, const LabNode& node, const QemuHost& host,
                                   BootFirst first);

// True if a port has no cable: QEMU must be started with -S, and resumed once these links are down.
bool has_dark_ports(const LabNode& node);

// Boot indexes to write with qom-set, in this order: an index in use by a different device is freed first.
struct BootIndex {
  std::string device;
  int index;
};
std::vector<BootIndex> boot_index_writes(const LabNode& node, BootFirst first);

}  // namespace muster::lab

// qemu_args: a LabNode as a QEMU command line. Pure.
//
// q35, UEFI from OVMF with the node's own variables, iPXE ROM on the provisioning NIC alone, the boot drive
// on the root bus, the data drives and the other NICs each behind a pcie-root-port (which has ACS; the
// emulated switch has not) and an emulated IOMMU. NICs come before drives, so that a further drive moves none
// of them. The model of an NVMe drive is fixed in QEMU: the guest sees "QEMU NVMe Ctrl"; serials are ours.
#pragma once

#include <string>
#include <vector>

#include "lab/lab_dir.h"
#include "lab/lab_spec.h"

namespace muster::lab {

enum class Accel { tcg, kvm };
std::string_view to_string(Accel accel);

// The next boot device: the NIC or the boot drive.
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
// The root port that a drive sits behind; empty: the boot drive, which sits on the root bus.
std::string drive_port_id(const LabNode& node, const LabDrive& drive);
std::string drive_device_id(const LabDrive& drive);  // QEMU device id: "nvme-os"
inline const char* kNicId = "net0";

std::vector<std::string> qemu_args(const LabDir& dir, const LabNode& node, const QemuHost& host,
                                   BootFirst first);

// Some of its ports have no cable: QEMU has to be started with -S until their links are taken down.
bool has_dark_ports(const LabNode& node);

// Boot indexes to write with qom-set, in this order: an index in use by another device must be freed first.
struct BootIndex {
  std::string device;
  int index;
};
std::vector<BootIndex> boot_index_writes(const LabNode& node, BootFirst first);

}  // namespace muster::lab

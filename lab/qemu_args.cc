#include "lab/qemu_args.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::lab {
namespace {

const LabDrive* boot_drive(const LabNode& node) {
  for (const auto& drive : node.drives)
    if (drive.boot) return &drive;
  return nullptr;
}

// No ROM and no boot index, so the firmware never boots from these. Chassis and slot differ from the drives'.
void add_ports(const LabNode& node, std::vector<std::string>& args) {
  for (const auto& port : node.ports) {
    const auto& name = port.network;
    const int slot = 100 + port_number(name);
    args.insert(
        args.end(),
        {"-netdev", fmt::format("tap,id=n-{},ifname={},script=no,downscript=no", name, tap_name(node, name)),
         "-device", fmt::format("pcie-root-port,id=np-{0},chassis={1},slot={1}", name, slot), "-device",
         // virtio-net counts no errors; Intel's 82574L does.
         fmt::format("{},id={},netdev=n-{},mac={},romfile=,bus=np-{}",
                     port.counting ? "e1000e" : fmt::format("virtio-net-pci,host_mtu={}", kFastMtu),
                     nic_device_id(name), name, port.mac, name)});
  }
}

// A machine that can only ever have one processor is emulated without memory barriers and with atomic
// instructions that are not atomic (QEMU 7.2; `-d op` shows it), although its devices run in other threads. A
// drive then misses a doorbell now and then: its requests hang for a minute, until the guest resets it. So a
// second processor is made possible, but never added: then both are emulated correctly.
std::string processors(const LabNode& node, const QemuHost& host) {
  return node.smp == 1 && host.accel == Accel::tcg ? "1,maxcpus=2" : std::to_string(node.smp);
}

}  // namespace

std::string_view to_string(Accel accel) { return accel == Accel::kvm ? "kvm" : "tcg"; }

std::string tap_name(const LabNode& node, const std::string& network) {
  const auto tap = fmt::format("tap{}", node.number);
  return network == kProvisioning ? tap : tap + "-" + network;
}

std::string nic_device_id(const std::string& network) {
  return network == kProvisioning ? kNicId : "net-" + network;
}

bool has_dark_ports(const LabNode& node) {
  return std::any_of(node.ports.begin(), node.ports.end(), [](auto& port) { return !port.cabled; });
}

std::string drive_file(const LabDir& dir, const LabNode& node, const LabDrive& drive) {
  return dir.node(node.name, drive.name + ".img");
}

std::string drive_device_id(const LabDrive& drive) { return "nvme-" + drive.name; }

std::string drive_port_id(const LabNode& node, const LabDrive& drive) {
  if (drive.boot) return "";
  int port = 1;
  for (const auto& other : node.drives) {
    if (other.name == drive.name) break;
    if (!other.boot) ++port;
  }
  return fmt::format("rp{}", port);
}

std::vector<std::string> qemu_args(const LabDir& dir, const LabNode& node, const QemuHost& host,
                                   BootFirst first) {
  const bool network = first == BootFirst::network;
  std::vector<std::string> a = {"qemu-system-x86_64", "-name", "muster-lab-" + node.name};
  const auto add = [&](const std::string& flag, const std::string& value) {
    a.push_back(flag);
    a.push_back(value);
  };
  add("-machine", "q35");
  // Guests with newer kernels take spurious traps under TCG when cmpxchg16b is offered.
  add("-accel", host.accel == Accel::kvm ? "kvm" : "tcg,thread=multi,tb-size=256");
  add("-cpu", host.accel == Accel::kvm ? "host" : "qemu64,-cx16");
  add("-smp", processors(node, host));
  add("-m", std::to_string(node.memory_mib));
  a.insert(a.end(), {"-display", "none", "-vga", "none", "-nodefaults"});
  add("-uuid", node.uuid);
  add("-smbios",
      fmt::format("type=1,manufacturer={},product={},serial={}", kLabVendor, kLabProduct, node.serial));
  if (node.gpus > 0) add("-smbios", "type=11,value=" + standin_text({node.gpus, node.gpu_model}));
  add("-drive", "if=pflash,format=raw,readonly=on,file=" + host.firmware);
  add("-drive", "if=pflash,format=raw,file=" + dir.node(node.name, "vars.fd"));
  add("-chardev", fmt::format("socket,id=console,path={},server=on,wait=off,logfile={},logappend=on",
                              dir.node(node.name, "console.sock"), dir.node(node.name, "console.log")));
  add("-serial", "chardev:console");
  add("-qmp", fmt::format("unix:{},server=on,wait=off", dir.node(node.name, "qmp.sock")));
  add("-device", "intel-iommu");
  add("-netdev", fmt::format("tap,id=n0,ifname={},script=no,downscript=no", tap_name(node)));
  add("-device",
      fmt::format("virtio-net-pci,id={},netdev=n0,mac={},bootindex={}", kNicId, node.mac, network ? 1 : 2));
  add("-device", "virtio-rng-pci");
  add_ports(node, a);
  for (const auto& drive : node.drives) {
    add("-drive", fmt::format("file={},if=none,id={},format=raw,cache=unsafe,discard=unmap",
                              drive_file(dir, node, drive), drive.name));
    auto device =
        fmt::format("nvme,id={},drive={},serial={}", drive_device_id(drive), drive.name, drive.serial);
    if (drive.boot) {
      device += fmt::format(",bootindex={}", network ? 2 : 1);
    } else {
      const auto port = drive_port_id(node, drive), number = port.substr(2);
      add("-device", fmt::format("pcie-root-port,id={},chassis={},slot={}", port, number, number));
      device += ",bus=" + port;
    }
    add("-device", device);
  }
  return a;
}

std::vector<BootIndex> boot_index_writes(const LabNode& node, BootFirst first) {
  const auto* drive = boot_drive(node);
  if (!drive) return {{kNicId, 1}};
  const auto disk = drive_device_id(*drive);
  const bool network = first == BootFirst::network;
  return {{kNicId, 8}, {disk, 9}, {network ? kNicId : disk, 1}, {network ? disk : kNicId, 2}};
}

}  // namespace muster::lab

// The parts of Rack that make a PCIe port report an error, and that break simulated GPUs.
//
// QEMU's own injection sets the port's status and, before 8.0, sends no message for a corrected error to the
// root complex, whatever the guest enables (seen in 7.2's registers): the kernel never gets it. So the
// kernel's own injector (module aer_inject, in Debian's cloud and full kernels) is used to pass the error to
// its AER driver, over ssh, in the running system.
#include <fmt/format.h>

#include "lab/child.h"
#include "lab/lab.h"
#include "lab/rack.h"

namespace muster::lab {
namespace {

std::string quoted(const std::string& script) {
  std::string out = "'";
  for (const char c : script) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

constexpr const char* kFault = "/usr/lib/muster-standin/fault";
constexpr int kFellOffTheBus = 79;  // NVIDIA's Xid catalogue

}  // namespace

std::string pcie_error_script(const std::string& serial) {
  // The injector's input (drivers/pci/pcie/aer_inject.c): bus, device, function, a pad; uncorrected
  // status; corrected status, of which 1 is a receiver error; the header of a packet.
  return fmt::format(R"sh(set -eu
port=
for drive in /sys/class/nvme/nvme*; do
  if [ "$(tr -d " " <"$drive/serial")" = "{}" ]; then
    port=$(basename "$(dirname "$(readlink -f "$drive/device")")")
  fi
done
case $port in
  0000:??:??.?) ;;
  *) echo "no port above that drive: '$port'" >&2; exit 1 ;;
esac
modprobe aer_inject
byte() {{ printf "\\$(printf %03o "0x$1")"; }}
slot=${{port#0000:}}
device=${{slot#*:}}
{{
  byte "${{slot%%:*}}"; byte "${{device%.*}}"; byte "${{device#*.}}"
  printf '\000\000\000\000\000\001\000\000\000'
  printf '\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000'
}} >/run/muster-lab-aer
cat /run/muster-lab-aer >/dev/aer_inject
)sh",
                     serial);
}

Result<std::string> Rack::break_pcie(Slot& slot, const LabDrive& drive, bool heal) {
  const auto node = slot.machine->node();
  if (heal) return fail(Code::invalid, "a counted error remains until the machine restarts");
  if (drive_port_id(node, drive).empty())
    return fail(Code::invalid, drive.name + " is on the root bus, so there is no port above it");
  if (!slot.machine->running()) return fail(Code::conflict, node.name + " is off");
  TRY(const auto argv,
      ssh_command(options_.dir, node.name, {"sudo", "sh", "-c", quoted(pcie_error_script(drive.serial))}));
  TRY(const auto done, process_.run({.argv = argv, .deadline = 60 * kSecond}));
  if (!done.ok())
    return fail(Code::failed,
                fmt::format("{}: the kernel did not accept the error: {}{}", node.name, done.out, done.err));
  return fmt::format("the port of {} reported one corrected error", drive.name);
}

// The simulated GPUs' driver runs in the guest (lab/stub-gpu/): the fault is injected there, over ssh.
Result<std::string> Rack::break_gpu(Slot& slot, const Break& request) {
  const auto node = slot.machine->node();
  if (request.gpu >= node.gpus)
    return fail(Code::not_found,
                fmt::format("{} has {} simulated GPUs (lab.gpus), numbered from 0: there is no GPU {}",
                            node.name, node.gpus, request.gpu));
  if (!slot.machine->running()) return fail(Code::conflict, node.name + " is off");
  std::vector<std::string> remote = {"sudo", kFault, request.heal ? "heal" : "xid",
                                     std::to_string(request.gpu)};
  if (!request.heal) remote.push_back(std::to_string(kFellOffTheBus));
  TRY(const auto argv, ssh_command(options_.dir, node.name, remote));
  TRY(const auto done, process_.run({.argv = argv, .deadline = 60 * kSecond}));
  if (!done.ok())
    return fail(Code::failed, fmt::format("{}: the simulated driver did not accept the fault: {}{}",
                                          node.name, done.out, done.err));
  if (request.heal) return fmt::format("{} {} answers again", kSimulatedGpu, request.gpu);
  slot.faults[shown_name(request)] = fmt::format("{} {}: Xid {}", kSimulatedGpu, request.gpu, kFellOffTheBus);
  return fmt::format("{} {} fell off the bus (Xid {})", kSimulatedGpu, request.gpu, kFellOffTheBus);
}

}  // namespace muster::lab

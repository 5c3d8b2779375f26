// Compares each device's trained PCIe link with what both its ends support: an x16 card that was trained to
// x8 works, at half speed.
//
// How to run:  muster-accept pcie
// Reference:   the kernel's record of the link status and link capability registers (PCIe 7.5.3.6 and .8) of
//              both ends.
// Structure:   GPUs, NICs, storage controllers, and the switches above them. Each link is one part, named by
//              the device at its lower end. In sysfs a link joins an endpoint or a switch's upper port with
//              the port it is plugged into; the ports of a switch are not joined by a link.
// Expected:    a ratio of 1: width times speed, relative to what both ends support. An idle GPU slows its
//              link down to save power, so for GPUs only the width counts. No link reduces its width to save
//              power: `lanes_lost` above 0 indicates a bad contact, riser or device.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <set>

#include "host/pci_parts.h"
#include "host/port_ability.h"
#include "kernels/common/kernels.h"
#include "kernels/counters/counters.h"

namespace muster::kernels {
namespace {

struct End {
  double width = 0, speed = 0;            // as trained: lanes, GT/s
  double most_width = 0, most_speed = 0;  // what it can do
};

// Parses "16.0 GT/s PCIe"; 0 for "Unknown" or a missing file.
double number_in(const Files& files, const std::string& path) {
  return std::strtod(files.read_line(path).c_str(), nullptr);
}

// nullopt: this device has no link, or does not report it. Without a link the kernel reports 255 lanes,
// and 63 where all bits of the register are set.
std::optional<End> end_of(const Files& files, const std::string& folder) {
  const End end = {
      number_in(files, folder + "/current_link_width"), number_in(files, folder + "/current_link_speed"),
      number_in(files, folder + "/max_link_width"), number_in(files, folder + "/max_link_speed")};
  const bool tells = end.most_width >= 1 && end.most_width <= 32 && end.most_speed > 0;
  return tells ? std::optional<End>(end) : std::nullopt;
}

// Returns a device's path in the PCI tree: /sys/bus/pci/devices has links like
// "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0".
std::string place_of(const Files& files, const std::string& entry) {
  const std::string target = files.read_link(entry).value_or("");
  const size_t at = target.find("devices/");
  return at == std::string::npos ? entry : "/sys/" + target.substr(at);
}
std::string parent_of(const std::string& folder) { return folder.substr(0, folder.rfind('/')); }
std::string address_of(const std::string& folder) { return folder.substr(folder.rfind('/') + 1); }

const char* name_of(PciKind kind) {
  if (kind == PciKind::gpu || kind == PciKind::accelerator) return "GPU";
  return kind == PciKind::nic ? "NIC" : "storage controller";
}

// A device at a port with a link has a link itself, unless its registers cannot be read: they read all
// ones when it has fallen off the bus, and its driver may not have noticed.
bool is_dead(const Files& files, const std::string& folder) {
  return files.exists(folder + "/max_link_width") && !end_of(files, folder) &&
         end_of(files, parent_of(folder));
}

// Ports of QEMU and VMware report lanes and speeds of no hardware. QEMU also has two of TI's and one of
// Intel's (docs/specs/pci-ids.rst, hw/pci-bridge).
bool is_emulated(const Files& files, const std::string& port) {
  const std::string vendor = files.read_line(port + "/vendor");
  const std::string id = vendor + ":" + files.read_line(port + "/device");
  return vendor == "0x1b36" || vendor == "0x15ad" || id == "0x104c:0x8232" || id == "0x104c:0x8233" ||
         id == "0x8086:0x3420";
}

Json dead(const Files& files, const std::string& kind, const std::string& folder) {
  const std::string address = address_of(folder), part = fmt::format("{} {}", kind, address);
  Measurement out;
  out.check = "pcie";
  out.outcome = Outcome::failed;
  out.error = fmt::format("{} in {} does not answer: its PCI Express registers cannot be read", part,
                          address_of(parent_of(folder)));
  out.faulty_parts = {part};
  out.detail = {{"part", part},
                {"plugged_into", address_of(parent_of(folder))},
                {"max_link_width", files.read_line(folder + "/max_link_width")},
                {"max_link_speed", files.read_line(folder + "/max_link_speed")}};
  return {{"subject", address}, {"result", to_json(out)}};
}

Json measure(const Files& files, const std::string& kind, const std::string& folder, const End& device,
             const End& port) {
  const double width = std::min(device.most_width, port.most_width),
               speed = std::min(device.most_speed, port.most_speed);
  const std::string address = address_of(folder), driver = files.read_link(folder + "/driver").value_or("");
  Measurement out;
  out.check = "pcie";
  out.metrics["width"] = {device.width, "lanes"};
  out.metrics["speed"] = {device.speed, "GT/s"};
  out.metrics["ratio"] = {rounded(device.width / width * (kind == "GPU" ? 1 : device.speed / speed)),
                          "ratio"};
  const bool reported = device.width >= 1;  // 0: the register is empty, and the ratio is 0
  if (reported) out.metrics["lanes_lost"] = {std::max(0.0, width - device.width), "lanes"};
  out.detail = {{"part", fmt::format("PCIe link of {} {}", kind, address)},
                {"plugged_into", address_of(parent_of(folder))},
                {"numa_node", files.read_line(folder + "/numa_node", "-1")},
                {"device", {{"width", device.most_width}, {"speed", device.most_speed}}},
                {"port", {{"width", port.most_width}, {"speed", port.most_speed}}},
                {"verified", fmt::format("both ends support x{} at {} GT/s", width, speed)}};
  if (const std::string board = adapter_model(files, folder); !board.empty()) out.detail["model"] = board;
  if (is_emulated(files, parent_of(folder))) out.detail["emulated_slot"] = true;
  if (!driver.empty()) out.detail["driver"] = address_of(driver);
  if (!reported) out.detail["absent"] = {"lanes_lost"};
  const std::string model = files.read_line(folder + "/vendor") + ":" + files.read_line(folder + "/device");
  return {{"subject", address}, {"like", model}, {"result", to_json(out)}};
}

}  // namespace

Measurement run_pcie(const Files& files) {
  Measurement out;
  out.check = "pcie";
  out.parts = Json::array();
  out.detail["without_link"] =
      Json::array();  // there, but on the root complex, or without a record of its link
  std::set<std::string> seen;
  for (const PciPart& part : pci_parts(files)) {
    if (part.why != Why::real) continue;  // a virtual function shares its parent's link
    std::string kind = name_of(part.kind);
    // Walks up from the device: its link, then that of the switch above it, and so on to the root.
    for (std::string lower = place_of(files, part.folder); seen.insert(lower).second;) {
      const auto device = end_of(files, lower), port = end_of(files, parent_of(lower));
      const bool lost = is_dead(files, lower);
      if (lost) out.parts.push_back(dead(files, kind, lower));
      if (!device || !port) {
        if (!lost && kind != "switch") out.detail["without_link"].push_back(address_of(lower));
        break;
      }
      out.parts.push_back(measure(files, kind, lower, *device, *port));
      kind = "switch";
      lower = parent_of(parent_of(lower));
    }
  }
  return out;
}

}  // namespace muster::kernels

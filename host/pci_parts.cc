#include "host/pci_parts.h"

#include <algorithm>

#include "base/split.h"
#include "host/vital_data.h"

namespace muster {
namespace {

constexpr const char* kPci = "/sys/bus/pci/devices";
constexpr const char *kNvidia = "0x10de", *kAmd = "0x1002", *kIntel = "0x8086", *kMellanox = "0x15b3",
                     *kHabana = "0x1da3";

// HGX B200 and B300: four functions of ConnectX-7 adapters on the baseboard run the subnet manager of the
// NVSwitches. NVIDIA's Fabric Manager finds them by this field of the vital product data (User Guide, "NVLink
// Subnet Manager"); nothing else sets them apart from an InfiniBand port.
bool manages_nvswitches(const Files& files, const std::string& device) {
  return files.read_line(device + "/vendor") == kMellanox &&
         files.read_line(device + "/class").starts_with("0x0207") && has(vital_data(files, device), "SW_MNG");
}

bool has_compute_driver(const Files& files, const std::string& address) {
  return files.exists("/proc/driver/nvidia/gpus/" + address);
}

}  // namespace

PciKind pci_kind(const std::string& vendor, const std::string& pci_class) {
  const auto is = [&](const char* start) { return pci_class.starts_with(start); };
  const bool amd = vendor == kAmd;
  if (is("0x0302") || (is("0x0300") && vendor == kNvidia) || (is("0x0380") && (amd || vendor == kIntel)) ||
      (is("0x1200") && (amd || vendor == kHabana)))
    return PciKind::gpu;
  if (is("0x12")) return PciKind::accelerator;
  if (is("0x02")) return PciKind::nic;
  if (is("0x0108")) return PciKind::nvme;
  return is("0x01") ? PciKind::storage : PciKind::other;
}

bool passes_through(const std::string& driver) {
  return has(driver, "vfio") || driver == "pciback" || driver == "xen-pciback";
}

Why why_of_function(const Files& files, const std::string& device) {
  if (files.exists(device + "/physfn")) return Why::virtual_function;
  if (has(last_component(files.read_link(device).value_or("")), ".sf.")) return Why::subfunction;
  if (passes_through(last_component(files.read_link(device + "/driver").value_or(""))))
    return Why::given_to_guest;
  return manages_nvswitches(files, device) ? Why::manages_nvswitches : Why::real;
}

std::vector<PciPart> pci_parts(const Files& files) {
  std::vector<PciPart> out;
  for (const auto& address : files.list(kPci)) {
    PciPart part;
    part.address = address;
    part.folder = std::string(kPci) + "/" + address;
    part.vendor = files.read_line(part.folder + "/vendor");
    const std::string pci_class = files.read_line(part.folder + "/class");
    part.kind = pci_kind(part.vendor, pci_class);
    if (part.kind == PciKind::other) continue;
    part.display = pci_class.starts_with("0x0300") && !has_compute_driver(files, address);
    part.why = why_of_function(files, part.folder);
    out.push_back(std::move(part));
  }
  const auto counts = [](const PciPart& part) { return part.kind == PciKind::gpu && part.why == Why::real; };
  const bool others =
      std::any_of(out.begin(), out.end(), [&](const PciPart& part) { return counts(part) && !part.display; });
  for (PciPart& part : out)
    if (others && part.display && counts(part)) part.why = Why::display_only;
  return out;
}

std::vector<PciPart> gpu_parts(const Files& files) {
  std::vector<PciPart> out = pci_parts(files);
  std::erase_if(out, [](const PciPart& part) { return part.kind != PciKind::gpu; });
  for (PciPart& part : out)
    if (part.why == Why::real && part.vendor != kNvidia) part.why = Why::no_nvidia;
  return out;
}

}  // namespace muster

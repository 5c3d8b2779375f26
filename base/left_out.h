// Devices that the kernel shows and that are no part of the machine to count or to measure: virtual
// functions, a BMC's USB network, an empty optical drive. The one list of the reasons, with their words; who
// applies each reason is in host/ (net_ports.h, rdma_devices.h, pci_parts.h, real_drives.h). Facts carry the
// words, so that an older controller can show those of a newer agent. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/words.h"

namespace muster {

enum class Why {
  real,  // it counts
  // Network and RDMA ports.
  virtual_function,
  subfunction,
  representor,
  on_usb,
  child,
  beneath_virtual,
  thunderbolt,
  wireless,
  manages_nvswitches,
  manages_planes,
  // GPUs.
  given_to_guest,
  no_nvidia,
  display_only,
  // Drives.
  optical,
  floppy,
  network_block,
  no_medium,
  removable,
  over_network,
  other_path,
  zoned,
  boot_area,
  flash,
  memory,
};

inline constexpr Words<Why, 25> kWhyWords = {{
    {Why::real, ""},
    {Why::virtual_function, "a virtual function"},
    {Why::subfunction, "a subfunction"},
    {Why::representor, "the representor of a virtual function or subfunction"},
    {Why::on_usb, "on USB, like the ports and disks of a BMC"},
    {Why::child, "shares the port of another interface"},
    {Why::beneath_virtual, "the data path of a virtual network port that is counted"},
    {Why::thunderbolt, "a network over Thunderbolt"},
    {Why::wireless, "wireless"},
    {Why::manages_nvswitches, "manages NVSwitches"},
    {Why::manages_planes, "for the management of a port's planes"},
    {Why::given_to_guest, "given to virtual machines"},
    {Why::no_nvidia, "not an NVIDIA GPU"},
    {Why::display_only, "a display card beside other GPUs, without a compute driver"},
    {Why::optical, "an optical drive"},
    {Why::floppy, "a floppy drive"},
    {Why::network_block, "a network block device"},
    {Why::no_medium, "has no size: no medium, or it does not respond"},
    {Why::removable, "a removable medium, such as a BMC's virtual disk"},
    {Why::over_network, "reached over a network"},
    {Why::other_path, "one more path to a drive that is counted"},
    {Why::zoned, "host-managed zones, which can be written only in order"},
    {Why::boot_area, "a boot area of a flash chip"},
    {Why::flash, "the flash memory of the board"},
    {Why::memory, "persistent memory"},
}};

struct LeftOut {
  std::string part = {};    // "port", "RDMA port", "GPU", "drive"
  std::string name = {};    // kernel name or PCI address
  std::string reason = {};  // kWhyWords

  bool operator==(const LeftOut&) const = default;
};

inline LeftOut left_out(const char* part, const std::string& name, Why why) {
  return {part, name, std::string(word_of(kWhyWords, why))};
}

}  // namespace muster

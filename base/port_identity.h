// A network port's own address, and whether that identifies its machine.
//
// It does not on USB (BMCs offer a port there whose address is the same on all machines of a vendor) and on a
// virtual function. A port of a bond shows the bond's address; its own is beside it. Thread: pure over Files.
#pragma once

#include <string>

#include "base/os.h"

namespace muster {

struct PortAddress {
  std::string mac = {};   // lower case, its own if known
  std::string kind = {};  // why it identifies no machine: "usb", "virtual-function"; empty: it may
};
// `folder`: the port's, such as /sys/class/net/eth0.
PortAddress port_address(const Files& files, const std::string& folder);

// By its driver, for inventories of older agents.
bool is_usb_driver(const std::string& driver);

}  // namespace muster

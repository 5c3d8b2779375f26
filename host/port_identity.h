// A network port's own address, and whether that identifies its machine.
//
// A USB port's does not (BMCs have one with the same address on all machines of a vendor), nor does a virtual
// function's. A port of a bond shows the bond's address; the port's own is in another file. Thread: any.
#pragma once

#include <string>

#include "sys/os.h"

namespace muster {

struct PortAddress {
  std::string mac = {};   // lower case, its own if known
  std::string kind = {};  // why `mac` does not identify the machine: "usb", "virtual-function"; else empty
};
// `folder`: the port's, such as /sys/class/net/eth0.
PortAddress port_address(const Files& files, const std::string& folder);

}  // namespace muster

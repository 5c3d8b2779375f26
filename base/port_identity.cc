#include "base/port_identity.h"

#include <set>

namespace muster {

bool is_usb_driver(const std::string& driver) {
  static const std::set<std::string> kDrivers = {
      "cdc_ether", "cdc_ncm", "cdc_eem",  "cdc_subset", "cdc_mbim", "rndis_host", "usbnet",
      "r8152",     "asix",    "smsc75xx", "smsc95xx",   "lan78xx",  "aqc111",     "ax88179_178a"};
  return kDrivers.count(driver) > 0;
}

}  // namespace muster

#include "base/port_address.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace muster {
namespace {

// Groups of addresses that do not belong to one port, by what they begin with.
constexpr const char* kShared[] = {
    "00:00:5e:",          // VRRP and CARP (RFC 5798, section 7.3) and other groups of IANA's
    "00:00:0c:07:ac:",    // HSRP (RFC 2281, section 5.1)
    "00:05:73:a0:",       // HSRP for IPv6 (Cisco's documentation)
    "00:07:b4:00:",       // GLBP (Cisco's documentation)
    "00:00:00:00:00:",    // adapters whose EEPROM was never written
    "00:01:02:03:04:05",  // likewise: counted up by firmware
    "00:11:22:33:44:55",  // likewise
    "00:e0:4c:53:44:58",  // Realtek USB adapters of several sellers (reports to linux-usb)
    "00:1a:7d:da:71:0a",  // USB adapters of several sellers (OCSInventory-ocsreports 1440)
    "00:a0:c9:00:00:00",  // Intel adapters whose NVM was erased (e1000 README, "invalid MAC")
};

}  // namespace

bool is_port_address(const std::string& mac) {
  if (mac.size() != 17) return false;
  for (size_t i = 0; i < mac.size(); ++i)
    if (i % 3 == 2 ? mac[i] != ':' : std::isxdigit(static_cast<unsigned char>(mac[i])) == 0) return false;
  const bool multicast = (std::strtoul(mac.substr(0, 2).c_str(), nullptr, 16) & 1) != 0;
  return !multicast && mac != "00:00:00:00:00:00";
}

bool names_one_port(const std::string& mac) {
  if (!is_port_address(mac)) return false;
  std::string low = mac;
  std::transform(low.begin(), low.end(), low.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if ((std::strtoul(low.substr(0, 2).c_str(), nullptr, 16) & 2) != 0) return false;
  return std::none_of(std::begin(kShared), std::end(kShared),
                      [&](const char* prefix) { return low.rfind(prefix, 0) == 0; });
}

}  // namespace muster

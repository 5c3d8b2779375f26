// MAC addresses of network ports, as text. Pure.
#pragma once

#include <string>

namespace muster {

// True for six pairs of hexadecimal digits of either case, separated by colons.
bool is_mac(const std::string& text);

// "52-54-00-AA-00-01" or "52:54:00:AA:00:01" -> "52:54:00:aa:00:01". Other text comes back in lower case with
// colons for dashes, and is_mac() is false for it.
std::string normal_mac(std::string mac);

}  // namespace muster

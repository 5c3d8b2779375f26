// MAC addresses as text. Pure functions.
#pragma once

#include <string>

namespace muster {

// "52-54-00-AA" or "52:54:00:aa" -> "52:54:00:aa"
std::string normal_mac(std::string mac);

}  // namespace muster

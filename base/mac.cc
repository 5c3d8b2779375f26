#include "base/mac.h"

#include <algorithm>

#include "base/lower.h"

namespace muster {

std::string normal_mac(std::string mac) {
  mac = lower(mac);
  std::replace(mac.begin(), mac.end(), '-', ':');
  return mac;
}

}  // namespace muster

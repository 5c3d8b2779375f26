#include "base/mac.h"

#include <algorithm>

#include "base/lower.h"
#include "base/scan.h"

namespace muster {
namespace {

constexpr size_t kLength = 17;

}  // namespace

bool is_mac(const std::string& text) {
  if (text.size() != kLength) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (i % 3 == 2 ? text[i] != ':' : !is_hex(text[i])) return false;
  return true;
}

std::string normal_mac(std::string mac) {
  mac = lower(std::move(mac));
  std::replace(mac.begin(), mac.end(), '-', ':');
  return mac;
}

}  // namespace muster

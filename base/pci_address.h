// PCI addresses as the kernel writes them: "0000:41:00.0". A domain has at least four digits: below Intel's
// VMD and some cloud bridges, domains begin at 10000 ("10001:81:00.0"). Header-only, pure functions.
#pragma once

#include <string_view>

namespace muster {

inline bool is_pci_address(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdefABCDEF", kFunction = "01234567";
  constexpr size_t kTail = 8, kFewest = 12, kMost = 16;  // ":41:00.0" after a domain of 32 bits
  if (text.size() < kFewest || text.size() > kMost) return false;
  const auto domain = text.substr(0, text.size() - kTail), tail = text.substr(text.size() - kTail);
  const auto hex = [&](std::string_view part) {
    return part.find_first_not_of(kHex) == std::string_view::npos;
  };
  return hex(domain) && tail[0] == ':' && hex(tail.substr(1, 2)) && tail[3] == ':' &&
         hex(tail.substr(4, 2)) && tail[6] == '.' && kFunction.find(tail[7]) != std::string_view::npos;
}

}  // namespace muster

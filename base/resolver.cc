#include "base/resolver.h"

namespace muster {

std::string joined_by_blanks(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string resolver_text(const std::vector<std::string>& dns, const std::vector<std::string>& search) {
  if (dns.empty())
    return "# Written by muster: the spec declares no network.dns, only /etc/hosts is known.\n";
  std::string out = "# Written by muster: network.dns and network.search of the spec.\n";
  if (!search.empty()) out += "search " + joined_by_blanks(search) + "\n";
  for (const auto& server : dns) out += "nameserver " + server + "\n";
  return out;
}

}  // namespace muster

#include "agent/measuring/own_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "agent/measuring/process_table.h"
#include "base/split.h"

namespace muster {
namespace {

constexpr std::string_view kVariable = "SSH_CONNECTION=";

// "CLIENT PORT SERVER PORT" -> SERVER.
std::string server_in(const std::string& environment) {
  for (const std::string& entry : split(environment, '\0')) {
    if (!entry.starts_with(kVariable)) continue;
    const auto words = split_words(entry.substr(kVariable.size()));
    return words.size() == 4 ? words[2] : "";
  }
  return "";
}

}  // namespace

std::vector<std::string> own_addresses() {
  std::vector<std::string> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  for (const ifaddrs* one = list; one; one = one->ifa_next) {
    if (!one->ifa_addr || !one->ifa_netmask || one->ifa_addr->sa_family != AF_INET) continue;
    if (!(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK)) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    const auto* mask = reinterpret_cast<const sockaddr_in*>(one->ifa_netmask);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text))
      out.push_back(std::string(text) + "/" + std::to_string(std::popcount(mask->sin_addr.s_addr)));
  }
  ::freeifaddrs(list);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string ssh_server_address(const Files& files, int64_t pid) {
  auto from = ancestors(process_tree(files), pid);  // shell, unshare, sudo, shell, sshd
  from.insert(from.begin(), pid);
  for (const int64_t one : from)
    if (const auto read = files.read("/proc/" + std::to_string(one) + "/environ"); read.ok())
      if (std::string server = server_in(*read); !server.empty()) return server;
  return "";
}

}  // namespace muster

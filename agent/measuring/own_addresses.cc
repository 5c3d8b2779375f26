#include "agent/measuring/own_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/split.h"

namespace muster {
namespace {

constexpr int kMostAbove = 16;  // sshd, shell, sudo, unshare, shell
constexpr std::string_view kVariable = "SSH_CONNECTION=", kParent = "PPid:";

// "CLIENT PORT SERVER PORT" -> SERVER.
std::string server_in(const std::string& environment) {
  for (const std::string& entry : split(environment, '\0')) {
    if (!entry.starts_with(kVariable)) continue;
    const auto words = split_words(entry.substr(kVariable.size()));
    return words.size() == 4 ? words[2] : "";
  }
  return "";
}

int64_t parent_of(const Files& files, int64_t pid) {
  const auto status = files.read("/proc/" + std::to_string(pid) + "/status");
  if (!status.ok()) return 0;
  for (const std::string& line : split_lines(*status))
    if (line.starts_with(kParent)) return std::atoll(line.c_str() + kParent.size());
  return 0;
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
  for (int above = 0; pid > 0 && above < kMostAbove; ++above, pid = parent_of(files, pid))
    if (const auto read = files.read("/proc/" + std::to_string(pid) + "/environ"); read.ok())
      if (std::string server = server_in(*read); !server.empty()) return server;
  return "";
}

}  // namespace muster

#include "controller/spec/host_name.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/digest.h"
#include "base/lower.h"
#include "base/scan.h"

namespace muster {
namespace {

constexpr size_t kLongest = 63;  // RFC 1035, 2.3.4; the kernel's own limit is 64

// Lower case, as names of nodes are.
const std::map<std::string, std::string>& words() {
  static const std::string hosts = "is reserved: every machine uses it for itself (/etc/hosts, RFC 6761)";
  // dnsmasq 2.90, option.c: --dhcp-host=MAC,ADDRESS,NAME,12h. If the name is the first keyword, the machine
  // gets no answer; if it is the second, it gets no name.
  static const std::string dnsmasq = "is a keyword in dnsmasq's dhcp-host";
  // slurm.conf(5): NodeName=DEFAULT sets defaults for the lines after it, Nodes=ALL is every node; both are
  // case-insensitive.
  static const std::string slurm = "is a keyword in slurm.conf";
  // Open MPI 4.1 reports "parse error in the hostfile" if a line begins with one.
  static const std::string mpi = "is a keyword in Open MPI's hostfile";
  static const std::map<std::string, std::string> all = {
      {"localhost", hosts},
      {"localdomain", hosts},
      {"ip6-localhost", hosts},
      {"ip6-loopback", hosts},
      {"ip6-localnet", hosts},
      {"ip6-mcastprefix", hosts},
      {"ip6-allnodes", hosts},
      {"ip6-allrouters", hosts},
      {"ip6-allhosts", hosts},
      {"broadcasthost", hosts},
      {"ignore", dnsmasq},
      {"infinite", dnsmasq},
      {"all", slurm},
      {"default", slurm + " and in Ceph's CRUSH map"},
      {"boards", mpi},
      {"cores", mpi},
      {"count", mpi},
      {"count-max", mpi},
      {"cpu", mpi},
      {"cpu-max", mpi},
      {"max-slots", mpi},
      {"port", mpi},
      {"slot", mpi},
      {"slots", mpi},
      {"slots-max", mpi},
      {"sockets", mpi},
      {"user-name", mpi},
      {"username", mpi},
  };
  return all;
}

bool is_label(const std::string& name) {
  Scan scan(name);
  if (!scan.skip(1, is_lower)) return false;
  scan.take([](char c) { return is_lower_or_digit(c) || c == '-'; });
  return scan.ended() && name.back() != '-';
}

// One spelling for each IPv6 address: "fd00:0::C" -> "fd00::c". Anything else is returned as it is.
std::string plain_ipv6(const std::string& text) {
  const size_t zone = std::min(text.find('%'), text.size());
  in6_addr address = {};
  char out[INET6_ADDRSTRLEN] = {};
  if (::inet_pton(AF_INET6, text.substr(0, zone).c_str(), &address) != 1 ||
      !::inet_ntop(AF_INET6, &address, out, sizeof out))
    return text;
  return out + text.substr(zone);
}

bool is_ipv4(const std::string& text) {
  in_addr address = {};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

constexpr size_t kDigest = 8;  // characters of a digest that tell shortened names apart

}  // namespace

std::string wrong_host_name(const std::string& name) {
  if (name.size() > kLongest)
    return fmt::format("'{}' has {} characters; a host name has at most {}", name, name.size(), kLongest);
  if (!is_label(name))
    return fmt::format(
        "'{}' is not a host name: it must be a lower-case letter followed by lower-case letters, digits and "
        "'-'",
        name);
  const auto found = words().find(name);
  return found == words().end()
             ? ""
             : fmt::format("'{}' {}: choose a different name, such as {}01", name, found->second, name);
}

std::string host_label(const std::string& written) {
  if (is_label(written) && written.size() <= kLongest) return written;
  const std::string text = lower(plain_ipv6(written));
  const bool address = is_ipv4(text) || text.find(':') != std::string::npos;
  std::string out;
  for (const char c : text) out += is_lower_or_digit(c) ? c : '-';
  if (!address) out.erase(0, out.find_first_not_of('-'));
  while (!address && !out.empty() && out.back() == '-') out.pop_back();
  if (out.find_first_not_of('-') == std::string::npos) return "";
  if (out.back() == '-') out += '0';  // fd00::
  if (address) out.insert(0, "ip-");
  if (is_digit(out[0])) out.insert(0, "n");
  if (out.size() <= kLongest) return out;
  out.resize(kLongest - kDigest - 1);
  return out + "-" + sha256(text).substr(7, kDigest);  // behind "sha256:"
}

}  // namespace muster

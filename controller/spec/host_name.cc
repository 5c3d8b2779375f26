#include "controller/spec/host_name.h"

#include <fmt/format.h>

#include <map>

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

}  // namespace muster

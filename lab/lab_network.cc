#include "lab/lab_network.h"

#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/json_dump.h"
#include "base/record.h"
#include "lab/child.h"
#include "lab/qemu_args.h"

namespace muster::lab {

MUSTER_RECORD(Namespace, name, inode)

namespace {

constexpr uint16_t kExperimental = 0x88b5;  // IEEE 802: local experiments

struct Socket {
  int fd = -1;
  ~Socket() {
    if (fd >= 0) close(fd);
  }
};

Argv ip(const std::string& space, std::vector<std::string> words) {
  Argv out = {"ip"};
  if (!space.empty()) out.insert(out.end(), {"-n", space});
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

uint64_t inode_of(const std::string& name) {
  struct stat st {};
  return stat(("/run/netns/" + name).c_str(), &st) == 0 ? st.st_ino : 0;
}

constexpr const char* kBridgeAddress = "52:54:00:20:ff:01";

// Left behind by a lab whose machine or processes were ended from outside: it looks like a lab's, and nothing
// runs in it. A lab that is up runs its BMCs in its namespace; one that is starting holds the claim.
bool is_dead_lab(Process& process, const std::string& name) {
  if (!processes_in_namespace(inode_of(name)).empty()) return false;
  const auto bridge =
      run_ok(process, Command{.argv = ip(name, {"link", "show", "br0"}), .deadline = 20 * kSecond});
  return bridge.ok() && bridge->find(kBridgeAddress) != std::string::npos;
}

}  // namespace

Result<std::string> giant_frame(const std::string& mac) {
  unsigned byte[6] = {};
  char more = 0;
  if (mac.size() != 17 || sscanf(mac.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%c", &byte[0], &byte[1], &byte[2],
                                 &byte[3], &byte[4], &byte[5], &more) != 6)
    return fail(Code::invalid, "'" + mac + "' is not a MAC address");
  std::string out;
  for (const unsigned b : byte) out += static_cast<char>(b);
  out += std::string("\x02\0\0\0\0\x01", 6);  // a locally administered source address
  out += static_cast<char>(kExperimental >> 8);
  out += static_cast<char>(kExperimental & 0xff);
  out.resize(kGiantBytes, '\0');
  return out;
}

Status send_giants(const std::string& tap, const std::string& mac, int64_t count) {
  TRY(const std::string frame, giant_frame(mac));
  const Socket out{socket(AF_PACKET, SOCK_RAW, 0)};
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = static_cast<int>(if_nametoindex(tap.c_str()));
  if (out.fd < 0 || to.sll_ifindex == 0)
    return fail(Code::failed, fmt::format("cannot send on {}: {}", tap, strerror(errno)));
  for (int64_t i = 0; i < count; ++i)
    if (sendto(out.fd, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) !=
        static_cast<ssize_t>(frame.size()))
      return fail(Code::failed, fmt::format("{}: frame {} of {}: {}", tap, i + 1, count, strerror(errno)));
  return Ok{};
}

Result<LockFile> claim_namespace(const std::string& name) {
  const auto path = "/run/lock/" + name + ".lab";
  return LockFile::take(path,
                        "another lab named " + name + " is starting at this moment: " + path + " is locked");
}

std::string namespace_name(const LabSpec& spec) { return "muster-" + spec.cluster; }

std::vector<Argv> bridge_commands(const LabSpec& spec, const std::string& space) {
  const auto slash = spec.provisioning_cidr.find('/');
  const std::string prefix = slash == std::string::npos ? "" : spec.provisioning_cidr.substr(slash);
  std::vector<Argv> out = {
      ip(space, {"link", "set", "lo", "up"}),
      ip(space, {"link", "add", "br0", "address", kBridgeAddress, "type", "bridge", "stp_state", "0",
                 "forward_delay", "0", "mcast_snooping", "0"}),
      ip(space, {"addr", "add", spec.controller + prefix, "dev", "br0"}),
      // This veth pair only gives the bridge a carrier while every machine is off: without one, the bridge
      // has no link-local address, which router advertisements need.
      ip(space, {"link", "add", "keep0", "type", "veth", "peer", "name", "keep1"}),
      ip(space, {"link", "set", "keep1", "addrgenmode", "none"}),
      ip(space, {"link", "set", "keep0", "master", "br0", "addrgenmode", "none"}),
      ip(space, {"link", "set", "keep1", "up"}),
      ip(space, {"link", "set", "keep0", "up"}),
      ip(space, {"link", "set", "br0", "up"}),
  };
  const auto mtu = std::to_string(kFastMtu);
  for (const auto& network : fast_networks(spec)) {
    const auto bridge = bridge_name(network);
    out.push_back(ip(space, {"link", "add", bridge, "type", "bridge", "stp_state", "0", "forward_delay", "0",
                             "mcast_snooping", "0"}));
    // The MTU is set after creation: otherwise the bridge would lower it to the smallest MTU of its ports.
    out.push_back(ip(space, {"link", "set", bridge, "mtu", mtu, "addrgenmode", "none"}));
    out.push_back(ip(space, {"link", "set", bridge, "up"}));
  }
  return out;
}

std::vector<Argv> node_commands(const LabNode& node, const std::string& space) {
  std::vector<Argv> out = {
      ip(space, {"tuntap", "add", tap_name(node), "mode", "tap"}),
      ip(space, {"link", "set", tap_name(node), "master", "br0"}),
      ip(space, {"link", "set", tap_name(node), "up"}),
  };
  // `replace`: machines of the same provider share the address of its API.
  if (!node.bmc_address.empty())
    out.push_back(
        ip(space, {"addr", node.server.empty() ? "add" : "replace", node.bmc_address + "/32", "dev", "br0"}));
  for (const auto& port : node.ports) {
    const auto tap = tap_name(node, port.network);
    out.push_back(ip(space, {"tuntap", "add", tap, "mode", "tap"}));
    out.push_back(ip(space, {"link", "set", tap, "mtu", std::to_string(kFastMtu)}));
    out.push_back(ip(space, {"link", "set", tap, "master", bridge_name(port.network)}));
    out.push_back(ip(space, {"link", "set", tap, "up"}));
  }
  return out;
}

std::vector<Argv> node_removal_commands(const LabNode& node, const std::string& space) {
  std::vector<Argv> out = {ip(space, {"link", "del", tap_name(node)})};
  if (!node.bmc_address.empty())
    out.insert(out.begin(), ip(space, {"addr", "del", node.bmc_address + "/32", "dev", "br0"}));
  for (const auto& port : node.ports) out.push_back(ip(space, {"link", "del", tap_name(node, port.network)}));
  return out;
}

Argv link_command(const std::string& tap, bool up) {
  return ip("", {"link", "set", tap, up ? "up" : "down"});
}

Argv shape_command(const std::string& tap, const std::string& rate) {
  if (rate.empty()) return {"tc", "qdisc", "del", "dev", tap, "root"};
  return {"tc",   "qdisc", "replace", "dev",  tap,       "root", "tbf",
          "rate", rate,    "burst",   "64kb", "latency", "400ms"};
}

Argv mtu_command(const std::string& tap, int bytes) {
  return ip("", {"link", "set", tap, "mtu", std::to_string(bytes)});
}

Status run_all(Process& process, const std::vector<Argv>& commands) {
  for (const auto& argv : commands) {
    auto done = run_ok(process, Command{.argv = argv, .deadline = 20 * kSecond});
    if (!done) return std::move(done).error().with(fmt::format("{}", fmt::join(argv, " ")));
  }
  return Ok{};
}

Result<Namespace> create_namespace(Process& process, const LabDir& dir, const std::string& name) {
  if (inode_of(name) != 0 && is_dead_lab(process, name))
    TRY_(run_all(process, {{"ip", "netns", "del", name}}));
  if (inode_of(name) != 0)
    return fail(Code::conflict, "a network namespace named " + name +
                                    " exists and belongs to another lab, possibly one with the same cluster "
                                    "name: run `muster lab down` there, or `ip netns del " +
                                    name + "`");
  TRY_(run_all(process, {{"ip", "netns", "add", name}}));
  const Namespace space{name, inode_of(name)};
  TRY_(Files("/").write(dir.space(), dump_json(record_json(space)) + "\n"));
  return space;
}

Result<Namespace> recorded_namespace(const LabDir& dir) {
  TRY(auto text, Files("/").read(dir.space()));
  TRY(auto json, parse_json(text));
  return read_record<Namespace>(json, dir.space());
}

bool namespace_exists(const Namespace& space) {
  return space.inode != 0 && inode_of(space.name) == space.inode;
}

Status delete_namespace(Process& process, const Namespace& space) {
  if (!namespace_exists(space)) return Ok{};
  return run_all(process, {{"ip", "netns", "del", space.name}});
}

}  // namespace muster::lab

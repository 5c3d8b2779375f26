#include "agent/image/boot_network.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>

#include "base/json.h"
#include "base/json_at.h"
#include "base/lower.h"
#include "base/mac.h"
#include "base/resolver.h"
#include "host/net_ports.h"

namespace muster {
namespace {

constexpr const char* kNetworkdFolder = "/etc/systemd/network/";
constexpr const char* kSay = "# Provisioning network; written when the image was installed.\n";

std::string addresses(const wire::ImageJob& job) {
  std::string s = fmt::format("Address={}\n", job.address_cidr);
  if (!job.gateway.empty()) s += "Gateway=" + job.gateway + "\n";
  if (!job.dns.empty()) s += "DNS=" + joined_by_blanks(job.dns) + "\n";
  if (!job.search.empty()) s += "Domains=" + joined_by_blanks(job.search) + "\n";
  return s + "DHCP=no\nIPv6AcceptRA=no\nLLMNR=no\nLinkLocalAddressing=no\nConfigureWithoutCarrier=yes\n";
}

std::string netdev(const std::string& name, const std::string& kind, const std::string& more) {
  return fmt::format("{}[NetDev]\nName={}\nKind={}\n\n{}", kSay, name, kind, more);
}

constexpr int kLongestMtu = 65535, kLastVlan = 4094;

const std::set<std::string>& bond_modes() {
  static const std::set<std::string> modes = {"balance-rr", "active-backup", "balance-xor", "broadcast",
                                              "802.3ad",    "balance-tlb",   "balance-alb"};
  return modes;
}

bool is_ipv4(const std::string& text) {
  in_addr ignored;
  return ::inet_pton(AF_INET, text.c_str(), &ignored) == 1;
}

std::optional<int> number(const std::string& text, int first, int last) {
  int value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size() || value < first || value > last)
    return std::nullopt;
  return value;
}

Status read_optional(const std::string& cmdline, RamNetwork& network) {
  network.gateway = cmdline_value(cmdline, "muster.gateway");
  if (!network.gateway.empty() && !is_ipv4(network.gateway))
    return fail(Code::invalid, "muster.gateway is not an IPv4 address: '" + network.gateway + "'");
  for (const auto& [key, place, first, last] : {std::tuple{"muster.vlan", &network.vlan, 1, kLastVlan},
                                                {"muster.mtu", &network.mtu, 576, kLongestMtu}}) {
    const std::string text = cmdline_value(cmdline, key);
    if (text.empty()) continue;
    const auto value = number(text, first, last);
    if (!value)
      return fail(Code::invalid, fmt::format("{} must be between {} and {}: '{}'", key, first, last, text));
    *place = *value;
  }
  const std::string bond = cmdline_value(cmdline, "muster.bond");
  if (bond.empty()) return Ok{};
  const size_t colon = bond.find(':');
  network.bond_mode = bond.substr(0, colon);
  std::istringstream macs(colon == std::string::npos ? "" : bond.substr(colon + 1));
  for (std::string mac; std::getline(macs, mac, ',');) network.ports.push_back(mac);
  const bool macs_are =
      !network.ports.empty() && std::all_of(network.ports.begin(), network.ports.end(), is_mac);
  if (!bond_modes().count(network.bond_mode) || !macs_are)
    return fail(Code::invalid,
                "muster.bond must be a mode and a list of MACs, such as 802.3ad:MAC,MAC: '" + bond + "'");
  return Ok{};
}

// ---- the running system ----

int number_in(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_number_integer() ? it->get<int>() : 0;
}
const Json& object_in(const Json& object, const char* key) {
  static const Json none = Json::object();
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_object() ? *it : none;
}

Result<Json> ip(Process& process, std::vector<std::string> arguments) {
  Command command;
  command.argv = {"ip", "-j"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.deadline = 20 * kSecond;
  TRY(const std::string out, run_ok(process, command));
  TRY(Json json, parse_json(out));
  if (!json.is_array()) return fail(Code::failed, "`ip -j` did not print a list");
  return json;
}

// Follows the stack of devices from the one that has the address (VLAN, bridge, bond) down to the hardware.
class Descent {
 public:
  Descent(const Files& files, const Json& links, RamNetwork& network) : files_(files), network_(network) {
    for (const auto& link : links) links_[text_at(link, "ifname")] = link;
  }

  Result<Json> link(const std::string& name) const {
    const auto found = links_.find(name);
    if (found == links_.end()) return fail(Code::failed, "`ip` does not show the device " + name);
    return found->second;
  }

  Status from(std::string name) {
    constexpr int kDeepest = 8;
    for (int depth = 0; depth < kDeepest; ++depth) {
      TRY(const Json at, link(name));
      const std::string kind = text_at(object_in(at, "linkinfo"), "info_kind");
      const Json& data = object_in(object_in(at, "linkinfo"), "info_data");
      if (kind == "vlan") {
        TRY(name, through_vlan(at, data));
      } else if (kind == "bridge") {
        TRY(name, through_bridge(name, data));
      } else if (kind == "bond") {
        return through_bond(name, data);
      } else {
        TRY(network_.mac, mac_of(at));
        return Ok{};
      }
    }
    return fail(Code::denied, "this machine's network devices are stacked more than " +
                                  std::to_string(kDeepest) + " levels deep");
  }

 private:
  Result<std::string> through_vlan(const Json& at, const Json& data) {
    const std::string protocol = text_at(data, "protocol");
    if (network_.vlan != 0 || (!protocol.empty() && protocol != "802.1Q"))
      return fail(Code::denied,
                  text_at(at, "ifname") + " is a VLAN inside another VLAN, or is not an 802.1Q VLAN");
    network_.vlan = number_in(data, "id");
    if (network_.vlan < 1 || network_.vlan > kLastVlan)
      return fail(Code::failed, "`ip` does not show the VLAN ID of " + text_at(at, "ifname"));
    return text_at(at, "link");
  }

  // Virtual machines' and containers' ports do not exist in the RAM system: only the one physical port
  // counts.
  Result<std::string> through_bridge(const std::string& name, const Json& data) const {
    if (number_in(data, "vlan_filtering") != 0) return fail(Code::denied, name + " is a VLAN-aware bridge");
    std::vector<std::string> real;
    for (const auto& [port, link] : links_) {
      if (text_at(link, "master") != name) continue;
      const std::string kind = text_at(object_in(link, "linkinfo"), "info_kind");
      if (kind == "vlan" || kind == "bond" || has_hardware(port)) real.push_back(port);
    }
    if (real.size() == 1) return real.front();
    return fail(Code::denied, fmt::format("{} is a bridge with {} physical ports; exactly one is supported",
                                          name, real.size()));
  }

  Status through_bond(const std::string& name, const Json& data) {
    network_.bond_mode = text_at(data, "mode");
    if (!bond_modes().count(network_.bond_mode))
      return fail(Code::denied,
                  fmt::format("the bond {} has the unsupported mode '{}'", name, network_.bond_mode));
    for (const auto& [port, link] : links_) {
      if (text_at(link, "master") != name) continue;
      TRY(const std::string mac, mac_of(link));
      network_.ports.push_back(mac);
    }
    if (network_.ports.empty()) return fail(Code::denied, "the bond " + name + " has no ports");
    network_.mac = network_.ports.front();
    return Ok{};
  }

  bool has_hardware(const std::string& name) const {
    return files_.exists("/sys/class/net/" + name + "/device");
  }

  // Returns the permanent MAC, which the port has again after its driver is reloaded: while in a bond, all
  // ports show the bond's.
  Result<std::string> mac_of(const Json& link) const {
    const std::string name = text_at(link, "ifname");
    if (!has_hardware(name) || text_at(link, "link_type") != "ether")
      return fail(Code::denied, name + " is not an Ethernet port of this machine");
    std::string mac = text_at(link, "permaddr");
    if (mac.empty()) mac = own_mac(files_, "/sys/class/net/" + name);
    if (mac.empty()) mac = text_at(link, "address");
    mac = lower(mac);
    if (!is_mac(mac)) return fail(Code::denied, name + " has no MAC");
    return mac;
  }

  const Files& files_;
  RamNetwork& network_;
  std::map<std::string, Json> links_;
};

}  // namespace

std::map<std::string, std::string> network_files(const wire::ImageJob& job, const RamNetwork& way) {
  std::map<std::string, std::string> out;
  const auto put = [&out](const std::string& name, const std::string& text) {
    out[kNetworkdFolder + name] = text;
  };
  const std::string size = way.mtu > 0 ? fmt::format("\n[Link]\nMTUBytes={}\n", way.mtu) : "";
  if (way.bond_mode.empty() && way.vlan == 0) {
    put("10-muster.network",
        fmt::format("{}[Match]\nMACAddress={}\n\n[Network]\n{}", kSay, job.mac, addresses(job)));
    return out;
  }
  // A bond or a VLAN has the MAC of its port, so only the permanent MAC identifies the port.
  std::string match = "PermanentMACAddress=" + job.mac;
  if (!way.bond_mode.empty()) {
    put("10-muster-bond.netdev",
        netdev("bond0", "bond", fmt::format("[Bond]\nMode={}\nMIIMonitorSec=100ms\n", way.bond_mode)));
    for (size_t i = 0; i < way.ports.size(); ++i)
      put(fmt::format("09-muster-port-{}.network", i),
          fmt::format("{}[Match]\nPermanentMACAddress={}\n\n[Network]\nBond=bond0\n{}", kSay, way.ports[i],
                      size));
    match = "Name=bond0";
  }
  if (way.vlan > 0) {
    const std::string name = fmt::format("vlan{}", way.vlan);
    put("10-muster-vlan.netdev", netdev(name, "vlan", fmt::format("[VLAN]\nId={}\n", way.vlan)));
    put("09-muster-tagged.network",
        fmt::format("{}[Match]\n{}\n\n[Network]\nVLAN={}\nLinkLocalAddressing=no\n{}", kSay, match, name,
                    size));
    match = "Name=" + name;
  }
  put("10-muster.network",
      fmt::format("{}[Match]\n{}\n\n[Network]\n{}{}", kSay, match, addresses(job), size));
  return out;
}

std::string cmdline_value(const std::string& cmdline, const std::string& key) {
  std::istringstream in(cmdline);
  for (std::string word; in >> word;)
    if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
  return "";
}

Result<RamNetwork> ram_network(const std::string& cmdline) {
  RamNetwork network{cmdline_value(cmdline, "muster.mac"), cmdline_value(cmdline, "muster.ip")};
  if (network.mac.empty()) return fail(Code::invalid, "the kernel command line has no muster.mac");
  if (network.cidr.empty()) return fail(Code::invalid, "the kernel command line has no muster.ip");
  const size_t slash = network.cidr.find('/');
  const auto prefix =
      slash == std::string::npos ? std::nullopt : number(network.cidr.substr(slash + 1), 1, 32);
  if (!is_ipv4(network.cidr.substr(0, slash)) || !prefix)
    return fail(Code::invalid, "muster.ip must be an address with a prefix length, such as 10.20.0.11/24: '" +
                                   network.cidr + "'");
  TRY_(read_optional(cmdline, network));
  return network;
}

std::string network_arguments(const RamNetwork& n) {
  std::string out = fmt::format(" muster.ip={} muster.mac={}", n.cidr, n.mac);
  if (!n.gateway.empty()) out += " muster.gateway=" + n.gateway;
  if (n.vlan > 0) out += fmt::format(" muster.vlan={}", n.vlan);
  if (!n.bond_mode.empty()) out += fmt::format(" muster.bond={}:{}", n.bond_mode, fmt::join(n.ports, ","));
  if (n.mtu > 0) out += fmt::format(" muster.mtu={}", n.mtu);
  return out;
}

bool on_network(const std::string& cidr, const std::string& address) {
  in_addr own, other;
  const size_t slash = cidr.find('/');
  const auto prefix = number(cidr.substr(slash + 1), 1, 32);
  if (!prefix || ::inet_pton(AF_INET, cidr.substr(0, slash).c_str(), &own) != 1 ||
      ::inet_pton(AF_INET, address.c_str(), &other) != 1)
    return false;
  return (ntohl(own.s_addr) ^ ntohl(other.s_addr)) >> (32 - *prefix) == 0;
}

Result<RamNetwork> network_to(const Files& files, Process& process, const std::string& address) {
  if (!is_ipv4(address))
    return fail(Code::denied,
                "the controller is reached at " + address + ", but the RAM system supports IPv4 only");
  TRY(const Json routes, ip(process, {"route", "get", address}));
  if (routes.empty()) return fail(Code::failed, "`ip route get` shows no route to the controller");
  const Json& route = routes.front();
  const std::string device = text_at(route, "dev"), source = text_at(route, "prefsrc");
  if (text_at(route, "type") == "local" || device == "lo")
    return fail(Code::denied, "the controller runs on this machine itself");
  if (object_in(route, "via").size() > 0 || !is_ipv4(source))
    return fail(Code::denied, "the route to the controller is not entirely IPv4");
  RamNetwork network;
  network.gateway = text_at(route, "gateway");
  TRY(const Json links, ip(process, {"-d", "address", "show"}));
  Descent descent(files, links, network);
  TRY(const Json top, descent.link(device));
  if (const auto shown = top.find("addr_info"); shown != top.end() && shown->is_array())
    for (const auto& one : *shown)
      if (text_at(one, "family") == "inet" && text_at(one, "local") == source)
        network.cidr = fmt::format("{}/{}", source, number_in(one, "prefixlen"));
  if (network.cidr.empty())
    return fail(Code::denied,
                fmt::format("{}, the source address of the route to the controller, is not an address of {}",
                            source, device));
  if (!network.gateway.empty() && !on_network(network.cidr, network.gateway))
    return fail(Code::denied,
                fmt::format("the gateway {} of the route to the controller is not on the network {}",
                            network.gateway, network.cidr));
  constexpr int kUsual = 1500;
  if (const int mtu = number_in(top, "mtu"); mtu != kUsual) network.mtu = mtu;
  TRY_(descent.from(device));
  // Parses the result as the RAM system will.
  TRY(const RamNetwork read, ram_network(network_arguments(network)));
  return read;
}

}  // namespace muster

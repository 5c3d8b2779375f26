// networks: configures the ports of the rails and of the storage network through systemd-networkd: address,
// MTU, and a separate routing table for each rail.
//
// Without these tables the kernel replies through the first matching port in its main table, and half of the
// traffic of eight rails leaves through one port. A rule routes packets from a rail's address through that
// rail's table, which contains only the rail's network and its gateway, if it has one. For the same reason a
// port answers ARP only for its own address, and packets are accepted on a port even if the main table would
// route the reply through a different one (rp_filter 2). The check reads the kernel's state (`ip`), never the
// files; a port without a link is a failure that names the port. Ports are selected by
// agent/steps/network/port_choice.h and recorded for other steps (host/rails.h).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/network/port_choice.h"
#include "base/json.h"

namespace muster::steps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kNetworkdFolder = "/etc/systemd/network";
constexpr const char* kPrefix = "20-muster-";
constexpr const char* kSysctls = "/etc/sysctl.d/60-muster-networks.conf";
constexpr const char* kDebt = "networks";
constexpr int kFirstTable = 1100;  // table and rule priority of rail 0; the kernel's own begin at 253

struct WantedRail {
  int rail = 0;
  WantedPort port;
};
MUSTER_RECORD(WantedRail, rail, flat(port))

struct WantedNetworks {
  std::string mac;
  std::vector<WantedRail> rails;
  std::vector<WantedPort> storage;
  int64_t gpus = 0, deadline_seconds = 60, traffic_class = -1;
  std::vector<WantedPort> ports;  // of the rails, then the storage port
};
MUSTER_PARAMETERS(
    WantedNetworks, required(mac, "MAC address of the provisioning port, which is not changed"),
    optional(rails, "[{rail, address, network, port?, gateway?, mtu?, kind?}]"),
    optional(storage, "at most one entry of the same form, without `rail`"),
    optional(
        gpus,
        "declared number of GPUs; if the node has a different number, the step fails instead of selecting "
        "ports by GPU"),
    optional(traffic_class,
             "of RDMA on the rails, recorded for the programs that send it; -1: the device's own"),
    optional(deadline_seconds, "how long to wait for a port that is not ready yet"))

Status complete_networks(const StepContext&, WantedNetworks& want) {
  for (const auto& [rail, port] : want.rails) want.ports.emplace_back(port).rail = rail;
  want.ports.insert(want.ports.end(), want.storage.begin(), want.storage.end());
  return Ok{};
}

int table_of(const WantedPort& want) { return kFirstTable + want.rail; }

std::string network_text(const GivenPort& given, bool shares_function) {
  const WantedPort& w = given.want;
  std::string out = fmt::format("# Written by muster: {}.\n[Match]\n", w.title());
  if (w.is_ethernet())
    out += fmt::format("MACAddress={}\nType=ether\n", given.port.mac);
  else  // InfiniBand: the hardware address changes at every boot
    out += fmt::format("Path=pci-{}\nType=infiniband\n", given.port.pci) +
           (shares_function ? "Name=" + given.port.name + "\n" : "");
  // An unplugged cable must not delay a boot.
  out += "\n[Link]\nRequiredForOnline=no\n";
  if (w.mtu > 0) out += fmt::format("MTUBytes={}\n", w.mtu);
  out += fmt::format(
      "\n[Network]\nAddress={}/{}\nDHCP=no\nIPv6AcceptRA=no\nLLMNR=no\nLinkLocalAddressing=no\n"
      "ConfigureWithoutCarrier=yes\n",
      w.address, w.prefix());
  if (w.rail < 0) return out;
  const int table = table_of(w);
  out += fmt::format("\n[Route]\nDestination={}\nScope=link\nPreferredSource={}\nTable={}\n", w.network,
                     w.address, table);
  out +=
      w.gateway.empty()
          ? fmt::format("\n[Route]\nDestination=0.0.0.0/0\nType=unreachable\nTable={}\n", table)
          : fmt::format("\n[Route]\nGateway={}\nPreferredSource={}\nTable={}\n", w.gateway, w.address, table);
  return out +
         fmt::format("\n[RoutingPolicyRule]\nFrom={}\nTable={}\nPriority={}\n", w.address, table, table);
}

const std::map<std::string, std::string>& port_sysctls() {
  static const std::map<std::string, std::string> all = {
      {"arp_announce", "2"}, {"arp_ignore", "1"}, {"rp_filter", "2"}};
  return all;
}

std::string proc_path(const std::string& interface, const std::string& key) {
  return "/proc/sys/net/ipv4/conf/" + interface + "/" + key;
}

// Written with slashes, because interface names may contain dots. udev applies it to later interfaces too.
std::string sysctl_text(const std::vector<GivenPort>& ports) {
  if (ports.empty()) return "";
  std::string out = "# Written by muster.\n";
  for (const auto& given : ports)
    for (const auto& [key, value] : port_sysctls())
      out += fmt::format("net/ipv4/conf/{}/{} = {}\n", given.port.name, key, value);
  return out;
}

std::string provisioning_port(const Files& files, const std::string& mac) {
  for (const auto& port : physical_ports(files))
    if (port.mac == mac) return port.name;
  return "";
}

NetworksRecord record_of(const Files& files, const WantedNetworks& want,
                         const std::vector<GivenPort>& ports) {
  NetworksRecord out;
  out.provisioning = provisioning_port(files, want.mac);
  out.traffic_class = static_cast<int>(want.traffic_class);
  for (const auto& given : ports)
    out.ports.push_back({given.want.rail, given.port.name, given.port.pci, given.want.address});
  return out;
}

// A file with an empty text must not exist.
std::vector<OwnFile> own_files(const Files& files, const WantedNetworks& want,
                               const std::vector<GivenPort>& ports) {
  std::vector<OwnFile> out;
  std::map<std::string, int> functions;
  for (const auto& port : physical_ports(files)) ++functions[port.pci];
  for (const auto& given : ports)
    out.push_back({fmt::format("{}/{}{}.network", kNetworkdFolder, kPrefix, given.want.key()),
                   network_text(given, functions[given.port.pci] > 1), 0644});
  for (const auto& name : files.list(kNetworkdFolder)) {
    const std::string path = fmt::format("{}/{}", kNetworkdFolder, name);
    const bool known = std::any_of(out.begin(), out.end(), [&](const OwnFile& f) { return f.path == path; });
    if (name.starts_with(kPrefix) && !known) out.push_back({path, "", 0644});
  }
  out.push_back({kSysctls, sysctl_text(ports), 0644});
  const auto record = record_of(files, want, ports);
  out.push_back({kNetworksRecord, ports.empty() ? "" : networks_record_text(record), 0644});
  return out;
}

struct Live {
  Json links, rules, routes;
};
Result<Json> ip_json(StepContext& context, std::vector<std::string> words) {
  words.insert(words.begin(), {"ip", "-j"});
  TRY(const std::string out, run_tool(context, words));
  TRY(Json json, parse_json(out.empty() ? "[]" : out));
  if (!json.is_array()) return fail(Code::failed, "ip -j did not print a list");
  return json;
}
Result<Live> live_of(StepContext& context) {
  Live out;
  TRY(out.links, ip_json(context, {"address", "show"}));
  TRY(out.rules, ip_json(context, {"-4", "rule", "show"}));
  TRY(out.routes, ip_json(context, {"-4", "route", "show", "table", "all"}));
  return out;
}

std::string word(const Json& object, const char* key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || at == object.end()) return "";
  if (at->is_string()) return at->get<std::string>();
  return at->is_number_integer() ? std::to_string(at->get<int64_t>()) : "";
}

const Json* link_of(const Live& live, const std::string& interface) {
  for (const Json& link : live.links)
    if (word(link, "ifname") == interface) return &link;
  return nullptr;
}

bool has_flag(const Json& link, const char* flag) {
  const auto flags = link.find("flags");
  return flags != link.end() && flags->is_array() && std::count(flags->begin(), flags->end(), flag) > 0;
}

std::string addresses(const Json& link) {
  std::string out;
  const auto info = link.find("addr_info");
  if (info == link.end() || !info->is_array()) return out;
  for (const Json& one : *info)
    if (word(one, "family") == "inet")
      out += (out.empty() ? "" : " ") + word(one, "local") + "/" + word(one, "prefixlen");
  return out;
}

// Adds how the rule and the routing table of a rail differ. The table must have a route to the rail's network
// through the rail's port, and a default route: the gateway or, if there is none, `unreachable`.
void routes_diff(const Live& live, const GivenPort& given, const std::string& who, Diff& diff) {
  const std::string table = std::to_string(table_of(given.want)), name = given.port.name;
  bool rule = false, network = false, rest = false;
  for (const Json& r : live.rules)
    rule = rule || (word(r, "src") == given.want.address && word(r, "table") == table);
  for (const Json& r : live.routes) {
    if (word(r, "table") != table) continue;
    const bool here = word(r, "dev") == name;
    if (word(r, "dst") == given.want.network && here)
      network = true;
    else if (word(r, "dst") == "default" &&
             (given.want.gateway.empty() ? word(r, "type") == "unreachable"
                                         : here && word(r, "gateway") == given.want.gateway))
      rest = true;
    else
      diff.add(fmt::format("{}table {} has an undeclared route to {}", who, table, word(r, "dst")));
  }
  if (!rule) diff.add(fmt::format("{}no routing rule for {}", who, given.want.address));
  if (!network) diff.add(fmt::format("{}no route to {} in table {}", who, given.want.network, table));
  if (!rest)
    diff.add(given.want.gateway.empty()
                 ? fmt::format("{}table {} has no `unreachable` default route", who, table)
                 : fmt::format("{}no default route through {} in table {}", who, given.want.gateway, table));
}

// Adds how the configuration of a port differs. Its link is checked elsewhere.
void port_diff(const Files& files, const Live& live, const GivenPort& given, const std::string& who,
               Diff& diff) {
  const Json* link = link_of(live, given.port.name);
  if (!link) return diff.add(who + "is missing");
  const std::string want = fmt::format("{}/{}", given.want.address, given.want.prefix()),
                    have = addresses(*link);
  if (have != want) diff.add(fmt::format("{}address {} -> {}", who, have.empty() ? "none" : have, want));
  if (given.want.mtu > 0 && word(*link, "mtu") != std::to_string(given.want.mtu))
    diff.add(fmt::format("{}MTU {} -> {}", who, word(*link, "mtu"), given.want.mtu));
  for (const auto& [key, value] : port_sysctls())
    if (const auto now = files.read_line(proc_path(given.port.name, key)); now != value)
      diff.add(fmt::format("{}{} {} -> {}", who, key, now.empty() ? "unknown" : now, value));
  if (given.want.rail >= 0) routes_diff(live, given, who, diff);
}

std::string who_of(const StepContext& context, const GivenPort& given) {
  return fmt::format("{} on {}: {} ", given.want.title(), context.node, given.port.said());
}

Result<std::vector<GivenPort>> given_ports(StepContext& context, const WantedNetworks& want,
                                           std::vector<NetPort>& open) {
  TRY(const auto before, read_networks_record(context.files));
  return give_ports({context.files, context.node, want.mac, before, static_cast<int>(want.gpus)}, want.ports,
                    open);
}

Result<CheckResult> check_networks(StepContext& context, const WantedNetworks& want) {
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable, "an image has no ports; the step is checked on nodes"};
  std::vector<NetPort> open;
  const auto ports = given_ports(context, want, open);
  if (!ports.ok()) {
    if (ports.error().code == Code::not_found || ports.error().code == Code::conflict)
      return differs(ports.error().message);
    return ports.error();
  }
  Diff diff;
  for (const auto& file : own_files(context.files, want, *ports)) add_difference(context.files, file, diff);
  if (has_pending_reload(context.files, kDebt)) diff.add("an earlier change has not been loaded yet");
  if (ports->empty()) return diff.result();
  TRY(const auto live, live_of(context));
  for (const auto& given : *ports) {
    const std::string who = who_of(context, given);
    port_diff(context.files, live, given, who, diff);
    const Json* link = link_of(live, given.port.name);
    if (link && !has_flag(*link, "LOWER_UP")) diff.add(who + "has no link");
  }
  return diff.result();
}

bool wait_a_little(const StepContext& context, Clock::time_point until) {
  if (is_cancelled(context) || Clock::now() >= until) return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return true;
}

// An interface that is down does not show whether it has a link, so the candidates are brought up for the
// check; unused ones are taken down again.
Result<std::vector<GivenPort>> find_by_link(StepContext& context, const WantedNetworks& want,
                                            const std::vector<NetPort>& candidates) {
  TRY(const auto live, live_of(context));
  std::vector<std::string> raised;
  for (const auto& port : candidates) {
    const Json* link = link_of(live, port.name);
    if (!link || has_flag(*link, "UP")) continue;
    TRY_(run_tool(context, {"ip", "link", "set", "dev", port.name, "up"}));
    raised.push_back(port.name);
  }
  const auto until = Clock::now() + std::chrono::seconds(want.deadline_seconds);
  std::vector<NetPort> open;
  auto ports = given_ports(context, want, open);
  while (!ports.ok() && ports.error().code == Code::conflict && !raised.empty() &&
         wait_a_little(context, until))
    ports = given_ports(context, want, open);
  for (const auto& name : raised) {
    const bool used = ports.ok() && std::any_of(ports->begin(), ports->end(),
                                                [&](const GivenPort& g) { return g.port.name == name; });
    if (!used) TRY_(run_tool(context, {"ip", "link", "set", "dev", name, "down"}));
  }
  return ports;
}

Status load(StepContext& context, const std::vector<GivenPort>& ports, bool changed) {
  for (const auto& given : ports)
    for (const auto& [key, value] : port_sysctls()) {
      const std::string path = proc_path(given.port.name, key);
      if (context.files.read_line(path) != value) TRY_(context.files.write_raw(path, value + "\n"));
    }
  if (changed) TRY_(run_tool(context, {"networkctl", "reload"}));
  if (ports.empty()) return Ok{};
  TRY(const auto live, live_of(context));
  for (const auto& given : ports) {
    Diff diff;
    port_diff(context.files, live, given, "", diff);
    if (!diff.empty()) TRY_(run_tool(context, {"networkctl", "reconfigure", given.port.name}));
  }
  return Ok{};
}

Status apply_networks(StepContext& context, const WantedNetworks& want) {
  std::vector<NetPort> open;
  auto ports = given_ports(context, want, open);
  // A port may be missing because its driver was only just loaded.
  const auto until = Clock::now() + std::chrono::seconds(want.deadline_seconds);
  while (!ports.ok() && ports.error().code == Code::not_found && wait_a_little(context, until))
    ports = given_ports(context, want, open);
  if (!ports.ok() && !open.empty()) ports = find_by_link(context, want, open);
  if (!ports.ok()) return ports.error();
  const auto files = own_files(context.files, want, *ports);
  if (std::any_of(files.begin(), files.end(),
                  [&](const OwnFile& f) { return differs_from(context.files, f); }))
    TRY_(mark_pending(context.files, kDebt));
  for (const auto& file : files) TRY_(put(context.files, file));
  TRY_(load(context, *ports, has_pending_reload(context.files, kDebt)));
  return clear_pending(context.files, kDebt);
}

// Waits for the ports: `networkctl` returns before networkd is done, and link training takes time.
Status verify_networks(StepContext& context, const WantedNetworks& want) {
  const auto until = Clock::now() + std::chrono::seconds(want.deadline_seconds);
  for (;;) {
    TRY(const auto seen, check_networks(context, want));
    if (seen.holds != Holds::no) return Ok{};
    if (is_cancelled(context)) return fail(Code::cancelled, seen.diff);
    if (!wait_a_little(context, until)) return fail(Code::failed, seen.diff);
  }
}

}  // namespace

StepModule networks_module() {
  return step_module<WantedNetworks>({
      .name = "networks",
      .help =
          "Configures the ports of the rails and of the storage network through systemd-networkd: address, "
          "MTU, and for each rail a routing table and a rule. The result is checked against the kernel's "
          "state. The step fails if a port is missing or has no link. A port that the spec does not name is "
          "selected automatically (the rail of a GPU is the port nearest to it on PCI Express), and the "
          "choice is kept.",
      .check = check_networks,
      .apply = apply_networks,
      .verify = verify_networks,
      .complete = complete_networks,
  });
}

}  // namespace muster::steps

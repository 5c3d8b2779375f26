// FakeMachine's network ports: ip shows what the kernel has, networkctl makes it what the .network files say,
// dcb keeps its tables per port. Words and answers as of iproute2 6.1.
#include <fmt/format.h>

#include "agent/steps/step_modules.h"
#include "base/json_dump.h"
#include "tests/fakes/fake_machine.h"

namespace muster::tests {
namespace {

Output good(std::string out = "") { return {0, std::move(out), ""}; }
Output bad(std::string err) { return {1, "", std::move(err)}; }

using Section = std::pair<std::string, std::map<std::string, std::string>>;

std::vector<Section> sections_of(const std::string& text) {
  std::vector<Section> out;
  for (const auto& line : split_lines(text)) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[')
      out.push_back({line.substr(1, line.size() - 2), {}});
    else if (const size_t equals = line.find('='); equals != std::string::npos && !out.empty())
      out.back().second[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return out;
}

}  // namespace

void FakeMachine::add_port(const std::string& name, const std::string& pci, const std::string& mac,
                           bool cable, const std::string& rdma) {
  Port port;
  port.cable = cable;
  port.mac = mac;
  port.pci = pci;
  port.infiniband = mac.size() > 17;
  ports[name] = port;
  const std::string folder = "/sys/class/net/" + name, device = "/sys/devices/pci0000:00/" + pci;
  put(device + "/vendor", "0x15b3\n");
  (void)files().make_directories(folder);
  (void)files().symlink("../../.." + device.substr(4), folder + "/device");
  put(folder + "/address", mac + "\n");
  put(folder + "/type", port.infiniband ? "32\n" : "1\n");
  put(folder + "/carrier", "0\n");
  for (const char* key : {"arp_ignore", "arp_announce", "rp_filter"})
    put("/proc/sys/net/ipv4/conf/" + name + "/" + key, "");  // what is written is appended: no value yet
  if (rdma.empty()) return;
  const std::string at = "/sys/class/infiniband/" + rdma;
  put(at + "/ports/1/state", "4: ACTIVE\n");
  put(at + "/ports/1/phys_state", "5: LinkUp\n");
  put(at + "/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  put(at + "/ports/1/link_layer", port.infiniband ? "InfiniBand\n" : "Ethernet\n");
  (void)files().symlink("../../.." + device.substr(4), at + "/device");
  if (port.infiniband) return;
  put(at + "/ports/1/gid_attrs/ndevs/0", name + "\n");
}

void FakeMachine::configure(const std::string& name, Port& port) {
  for (const auto& file : files().list("/etc/systemd/network")) {
    const auto sections = sections_of(get("/etc/systemd/network/" + file));
    bool fits = false;
    for (const auto& [title, values] : sections)
      if (title == "Match")
        fits = values.count("MACAddress") ? values.at("MACAddress") == port.mac
                                          : values.count("Path") && values.at("Path") == "pci-" + port.pci;
    if (!fits) continue;
    port.addresses.clear();
    port.routes = port.rules = Json::array();
    port.up = true;
    put("/sys/class/net/" + name + "/carrier", port.cable ? "1\n" : "0\n");
    for (const auto& [title, values] : sections) {
      if (title == "Link" && values.count("MTUBytes")) port.mtu = std::stoi(values.at("MTUBytes"));
      if (title == "Network") port.addresses += (port.addresses.empty() ? "" : " ") + values.at("Address");
      if (title == "RoutingPolicyRule")
        port.rules.push_back({{"priority", std::stoi(values.at("Priority"))},
                              {"src", values.at("From")},
                              {"table", values.at("Table")}});
      if (title != "Route") continue;
      Json route = {{"dst", values.count("Destination") && values.at("Destination") != "0.0.0.0/0"
                                ? values.at("Destination")
                                : "default"},
                    {"table", values.at("Table")}};
      if (values.count("Type"))
        route["type"] = values.at("Type");
      else
        route["dev"] = name;
      if (values.count("Gateway")) route["gateway"] = values.at("Gateway");
      port.routes.push_back(route);
    }
    return;
  }
}

Output FakeMachine::networkctl(const std::vector<std::string>& argv) {
  for (auto& [name, port] : ports)
    if (argv[1] == "reload" || (argv[1] == "reconfigure" && argv[2] == name)) configure(name, port);
  return good();
}

Output FakeMachine::ip(const std::vector<std::string>& argv) {
  if (argv.size() == 6 && argv[1] == "link" && argv[2] == "set") {
    const auto port = ports.find(argv[4]);
    if (port == ports.end()) return bad("Cannot find device");
    port->second.up = argv[5] == "up";
    put("/sys/class/net/" + argv[4] + "/carrier", port->second.up && port->second.cable ? "1\n" : "0\n");
    return good();
  }
  const std::string line = steps::join(argv, " ");
  Json out = Json::array();
  for (const auto& [name, port] : ports) {
    if (line == "ip -j address show") {
      Json flags = Json::array({"BROADCAST", "MULTICAST"}), info = Json::array();
      if (port.up) flags.push_back("UP");
      if (port.up && port.cable) flags.push_back("LOWER_UP");
      for (const auto& address : split(port.addresses, ' ')) {
        const size_t slash = address.find('/');
        info.push_back({{"family", "inet"},
                        {"local", address.substr(0, slash)},
                        {"prefixlen", std::stoi(address.substr(slash + 1))}});
      }
      out.push_back({{"ifname", name}, {"flags", flags}, {"mtu", port.mtu}, {"addr_info", info}});
    }
    const Json& list = line == "ip -j -4 rule show" ? port.rules : port.routes;
    if (line == "ip -j -4 rule show" || line == "ip -j -4 route show table all")
      for (const Json& one : list) out.push_back(one);
  }
  if (!line.starts_with("ip -j")) return bad("unknown");
  return good(dump_json(out));
}

// "dcb [-N] pfc set dev eth1 prio-pfc all:off 3:on"
Output FakeMachine::dcb(const std::vector<std::string>& argv) {
  const size_t at = argv[1] == "-N" ? 2 : 1;
  const std::string &object = argv[at], &verb = argv[at + 1], &name = argv[at + 3];
  const auto port = ports.find(name);
  if (port == ports.end()) return bad("Cannot find device");
  if (!port->second.dcb) return bad("Attribute read: Operation not supported");
  auto& tables = port->second.dcb_tables;
  std::string table, shown;
  for (size_t i = at + 4; i < argv.size(); ++i) {
    const size_t colon = argv[i].find(':');
    if (colon == std::string::npos) {
      table = argv[i];
      if (verb != "show") continue;
      std::string words;
      for (int k = 0; k < 64; ++k) {
        const auto known = tables.find(table + " " + std::to_string(k));
        if (known != tables.end())
          words += fmt::format(" {}:{}", k, known->second);
        else if (object != "app" && k < 8)
          words += fmt::format(" {}:{}", k, object == "pfc" ? "off" : table == "tc-tsa" ? "strict" : "0");
      }
      if (!words.empty()) shown += table + words + " \n";
      continue;
    }
    const std::string key = argv[i].substr(0, colon), value = argv[i].substr(colon + 1);
    for (int k = 0; k < 8 && key == "all"; ++k) tables[table + " " + std::to_string(k)] = value;
    if (verb == "del")
      tables.erase(table + " " + key);
    else if (key != "all")
      tables[table + " " + key] = value;
  }
  return good(shown);
}

}  // namespace muster::tests

// Reads the networks other than provisioning: rails and the storage network, and the node's port and address
// in each. A node has the same host number in all networks: its address on rail 3 has the host part of its
// provisioning address. So nothing has to be numbered twice, an address identifies its node, and no two nodes
// can have the same address.
#include <fmt/format.h>

#include <algorithm>

#include "base/lower.h"
#include "base/mac.h"
#include "base/scan.h"
#include "controller/spec/reader/reader.h"
#include "controller/spec/units.h"

namespace muster {
namespace {

constexpr int kDatagramMtu = 4092;  // maximum MTU of IPoIB in datagram mode, which muster configures
constexpr const char* kAutomatic = "auto";
constexpr const char* kNone = "none";

// "0000:1a:00.0", or "1a:00.0" of domain 0000.
bool is_pci_address(const std::string& text) {
  Scan scan(text);
  if (text.find(':') != text.rfind(':') && (scan.take(is_hex, 8).size() < 4 || !scan.skip(":"))) return false;
  return scan.skip(2, is_hex) && scan.skip(":") && scan.skip(2, is_hex) && scan.skip(".") &&
         scan.skip(1, [](char c) { return c >= '0' && c <= '7'; }) && scan.ended();
}

bool is_interface_name(const std::string& text) {
  constexpr size_t kLongest = 15;
  Scan scan(text);
  if (text.size() > kLongest || !scan.skip(1, is_letter)) return false;
  scan.take([](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; });
  return scan.ended();
}

// Returns a port in the form that the node uses: lower case, PCI address with domain; empty if not a port.
std::string normal_port(std::string text) {
  if (text.size() > 20) return "";
  const std::string low = lower(text);
  if (is_pci_address(low)) return low.size() == 7 ? "0000:" + low : low;
  if (is_mac(low)) return low;
  return is_interface_name(text) ? text : "";
}

// Inserts the rail's number into "10.40.{rail}.0/24"; {rail+100} is the number plus 100.
Result<std::string> for_rail(const std::string& text, int rail) {
  std::string numbered = text;
  for (size_t at = 0; (at = numbered.find("{rail", at)) != std::string::npos; ++at)
    numbered.replace(at, 5, "{n");
  auto out = expand_number(numbered, rail, NumberForm::decimal);
  if (!out.ok())
    return fail(Code::invalid,
                fmt::format("'{}': only {{rail}} and {{rail+100}} are allowed in braces", text));
  return out;
}

// Returns the prefix of the smallest network that has a host with this number.
int prefix_for(uint32_t host) {
  int prefix = 30;
  while (prefix > 8 && host >= (uint32_t{1} << (32 - prefix)) - 1) --prefix;
  return prefix;
}

}  // namespace

bool SpecReader::check_port(const YamlNode& at, const std::string& path, bool one_node, std::string& out) {
  out = normal_port(at.text);
  if (out.empty()) {
    error(at, path,
          fmt::format("'{}' is not a port: give an interface name, a MAC address or a PCI address such as "
                      "0000:1a:00.0",
                      at.text));
    return false;
  }
  if (!is_mac(out) || one_node) return true;
  error(
      at, path,
      fmt::format("{} belongs to one node, but this entry covers several nodes: name ports by PCI address or "
                  "interface, or declare the node in an entry of its own",
                  out));
  return false;
}

void SpecReader::read_rail_ports(const YamlNode* list, const std::string& path, bool one_node,
                                 std::vector<std::string>& out) {
  if (!list || !list->is_list()) return;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& item = list->items[i];
    const std::string where = fmt::format("{}[{}]", path, i);
    std::string port;
    if (!item.is_text() || !check_port(item, where, one_node, port)) continue;
    if (std::count(out.begin(), out.end(), port)) {
      error(item, where, fmt::format("port {} is listed twice", port));
      continue;
    }
    out.push_back(port);
  }
}

void SpecReader::read_priorities(const YamlNode* map, const std::string& path, int most_key,
                                 std::map<int, int>& out) {
  if (!map || !map->is_map()) return;
  for (const YamlEntry& entry : map->entries) {
    if (!yaml_is_integer(entry.value) || entry.key.empty() || entry.key.size() > 2 ||
        entry.key.find_first_not_of("0123456789") != std::string::npos)
      continue;  // reported by the schema
    const int key = std::stoi(entry.key);
    const auto place = SpecError{entry.line, entry.column, path + "." + entry.key, ""};
    if (key > most_key) {
      errors_.push_back(place);
      errors_.back().message = fmt::format("{} is more than {}", key, most_key);
    } else if (!out.emplace(key, static_cast<int>(integer(map, entry.key.c_str(), 0))).second) {
      errors_.push_back(place);
      errors_.back().message = fmt::format("{} is given twice", key);
    }
  }
}

void SpecReader::read_qos(const YamlNode* qos) {
  RailQos& out = spec_.network.rails.qos;
  const std::string path = "network.rails.qos";
  if (!qos || !qos->is_map()) return;
  if (spec_.network.rails.kind == "infiniband")
    return error(*qos, path, "has no effect for kind 'infiniband', where the subnet manager controls QoS");
  if (const YamlNode* pfc = child(qos, "pfc"); pfc && pfc->is_list())
    for (size_t i = 0; i < pfc->items.size(); ++i) {
      if (!yaml_is_integer(pfc->items[i])) continue;
      const int priority = static_cast<int>(std::strtol(pfc->items[i].text.c_str(), nullptr, 10));
      if (std::count(out.pfc.begin(), out.pfc.end(), priority))
        error(pfc->items[i], fmt::format("{}.pfc[{}]", path, i), fmt::format("{} is given twice", priority));
      else
        out.pfc.push_back(priority);
    }
  std::sort(out.pfc.begin(), out.pfc.end());
  read_priorities(child(qos, "dscp"), path + ".dscp", 63, out.dscp);
  read_priorities(child(qos, "ets"), path + ".ets", 7, out.ets);
  int sum = 0;
  for (const auto& [priority, percent] : out.ets) sum += percent;
  if (sum > 99)
    error(*child(qos, "ets"), path + ".ets",
          fmt::format("adds up to {} %: at least 1 % must be left for the other priorities", sum));
}

void SpecReader::make_rail_networks(const YamlNode& rails) {
  const Rails& r = spec_.network.rails;
  const YamlNode* cidr = child(&rails, "cidr");
  const std::string path = "network.rails.cidr";
  if (!cidr || !cidr->is_text() || r.count < 1) return;
  const bool numbered = r.cidr.find('{') != std::string::npos;
  if (numbered && r.prefix > 0)
    return error(*child(&rails, "prefix"), "network.rails.prefix",
                 "applies to one network for all rails; with {rail}, each rail has its own network");
  if (!numbered && r.prefix == 0 && r.count > 1)
    return error(
        *cidr, path,
        fmt::format("is one network for {} rails: use {{rail}} in it, as in "
                    "10.100.{{rail}}.0/24, or give 'prefix', the prefix length of each rail's network",
                    r.count));
  std::vector<Cidr> out;
  for (int i = 0; i < r.count; ++i) {
    const auto text = for_rail(r.cidr, i);
    const auto whole = text.ok() ? parse_cidr(*text) : Result<Cidr>(text.error());
    if (!whole.ok())
      return error(*cidr, path,
                   whole.error().message + (numbered && text.ok() ? fmt::format(" (rail {})", i) : ""));
    if (r.prefix == 0) {
      out.push_back(*whole);
      continue;
    }
    if (r.prefix < whole->prefix ||
        (r.prefix - whole->prefix < 6 && 1 << (r.prefix - whole->prefix) < r.count))
      return error(*child(&rails, "prefix"), "network.rails.prefix",
                   fmt::format("{} has no room for {} networks of /{}", r.cidr, r.count, r.prefix));
    out.push_back({whole->base + (static_cast<uint32_t>(i) << (32 - r.prefix)), r.prefix});
  }
  rail_networks_ = std::move(out);
}

std::string SpecReader::overlapped(const Cidr& network, size_t rails) const {
  for (const auto& [other, name] :
       {std::pair{&provisioning_, "provisioning"}, {&bmc_, "bmc"}, {&storage_, "storage"}})
    if (*other && (*other)->overlaps(network))
      return fmt::format("the {} network {}", name, format_cidr(**other));
  for (size_t i = 0; i < rails; ++i)
    if (rail_networks_[i].overlaps(network))
      return fmt::format("{} of rail {}", format_cidr(rail_networks_[i]), i);
  return "";
}

// If networks overlap, it is undefined which port the kernel uses.
void SpecReader::check_rail_networks(const YamlNode& rails) {
  if (rail_networks_.empty()) return;
  const YamlNode& at = *child(&rails, "cidr");
  for (size_t i = 0; i < rail_networks_.size(); ++i)
    if (const std::string other = overlapped(rail_networks_[i], i); !other.empty())
      return error(at, "network.rails.cidr",
                   fmt::format("{} of rail {} overlaps {}", format_cidr(rail_networks_[i]), i, other));
  const YamlNode* gateway = child(&rails, "gateway");
  if (!gateway || !gateway->is_text()) return;
  for (size_t i = 0; i < rail_networks_.size(); ++i) {
    const auto text = for_rail(gateway->text, static_cast<int>(i));
    const auto address = text.ok() ? parse_ipv4(*text) : std::nullopt;
    if (!address || !rail_networks_[i].hosts(*address)) {
      rail_gateways_.clear();
      return error(*gateway, "network.rails.gateway",
                   text.ok() ? fmt::format("{} is not a host address of rail {}'s network {}", *text, i,
                                           format_cidr(rail_networks_[i]))
                             : text.error().message);
    }
    rail_gateways_.push_back(*text);
  }
}

void SpecReader::read_rails() {
  const YamlNode* network = child(&root_, "network");
  if (const YamlNode* port = child(child(network, "storage"), "port"); port && port->is_text()) {
    check_port(*port, "network.storage.port", false, spec_.network.storage_port);
    must_have_playbook(*port, "network.storage.port", "networks", "");
    if (storage_ && provisioning_ && storage_->overlaps(*provisioning_))
      error(*port, "network.storage.port",
            "the storage network is the same as the provisioning network, so it uses the provisioning port");
  }
  const YamlNode* rails = child(network, "rails");
  if (!rails || !rails->is_map()) return;
  Rails& out = spec_.network.rails;
  out.count = std::clamp(static_cast<int>(integer(rails, "count", 0)), 0, 32);
  out.cidr = text(rails, "cidr");
  out.prefix = static_cast<int>(integer(rails, "prefix", 0));
  out.mtu = static_cast<int>(integer(rails, "mtu", 0));
  out.rate_gbps = read_link_rate(rails, "network.rails");
  if (text(rails, "kind") == "infiniband") out.kind = "infiniband";
  out.gateway = text(rails, "gateway");
  if (out.kind == "infiniband" && out.mtu > kDatagramMtu)
    error(*child(rails, "mtu"), "network.rails.mtu",
          fmt::format("{} is more than {}, the maximum of IPoIB in datagram mode", out.mtu, kDatagramMtu));
  const YamlNode* ports = child(rails, "ports");
  read_rail_ports(ports, "network.rails.ports", false, out.ports);
  if (ports && ports->is_text() && ports->text != kAutomatic)
    error(*ports, "network.rails.ports",
          fmt::format("'{}' is neither a list of ports nor `auto`", ports->text));
  if (ports && ports->is_list() && static_cast<int>(ports->items.size()) != out.count)
    error(*ports, "network.rails.ports",
          fmt::format("{} ports are listed for {} rails", ports->items.size(), out.count));
  read_qos(child(rails, "qos"));
  make_rail_networks(*rails);
  check_rail_networks(*rails);
  if (child(rails, "count") && child(rails, "cidr"))  // otherwise the schema check reports an error here
    must_have_playbook(*rails, "network.rails", "networks", "");
}

// Reads what a role or a node overrides.
SpecReader::NicWishes SpecReader::read_wishes(const YamlNode* map, const std::string& path, bool one_node) {
  NicWishes out;
  const YamlNode *rails = child(map, "rails"), *port = child(map, "storage_port");
  const Rails& all = spec_.network.rails;
  if (rails && rails->is_map()) {
    if (!child(child(&root_, "network"), "rails"))
      error(*rails, path + ".rails", "no rails are declared: declare them in network.rails");
    const YamlNode *count = child(rails, "count"), *ports = child(rails, "ports");
    read_rail_ports(ports, path + ".rails.ports", one_node, out.rail_ports);
    if (count) out.rails = static_cast<int>(integer(rails, "count", 0));
    if (!count && ports) out.rails = static_cast<int>(ports->items.size());
    const YamlNode& at = count ? *count : ports ? *ports : *rails;
    if (out.rails && *out.rails > all.count && all.declared())
      error(at, path + (count ? ".rails.count" : ".rails.ports"),
            fmt::format("{} rails are more than the {} in network.rails", *out.rails, all.count));
    if (count && ports && static_cast<int>(ports->items.size()) != *out.rails)
      error(*ports, path + ".rails.ports",
            fmt::format("{} ports are listed for {} rails", ports->items.size(), *out.rails));
  }
  if (port && port->is_text()) {
    if (!child(child(&root_, "network"), "storage"))
      error(*port, path + ".storage_port", "no storage network is declared: declare it in network.storage");
    if (port->text == kNone)
      out.storage_port = kNone;
    else
      check_port(*port, path + ".storage_port", one_node, out.storage_port);
  }
  return out;
}

std::string SpecReader::address_in(const Cidr& network, const NodeSpec& node, const YamlNode& at,
                                   const std::string& path) {
  const auto own = parse_ipv4(node.address);
  if (!own || !provisioning_ || !provisioning_->hosts(*own)) return "";  // reported elsewhere
  const uint32_t host = *own & ~provisioning_->mask();
  if (host < (uint32_t{1} << (32 - network.prefix)) - 1) return format_ipv4(network.base + host);
  error_once(at, path,
             fmt::format("{} is too small: {} ({}) would be host number {}; a /{} is required",
                         format_cidr(network), node.name, node.address, host, prefix_for(host)));
  return "";
}

// Muster configures at most one address on a port.
void SpecReader::check_same_port(const NodeSpec& node, const YamlNode& at, const std::string& path) {
  std::map<std::string, std::string> seen;
  if (!node.mac.empty()) seen[node.mac] = "the provisioning port";
  if (!node.storage.port.empty() && !seen.emplace(node.storage.port, "the storage port").second)
    return error_once(at, path,
                      fmt::format("{} is the provisioning port of {}", node.storage.port, node.name));
  for (size_t i = 0; i < node.rails.size(); ++i) {
    if (node.rails[i].port.empty()) continue;
    const auto [other, first] = seen.emplace(node.rails[i].port, fmt::format("the port of rail {}", i));
    if (!first)
      error_once(at, path,
                 fmt::format("rail {} of {}: {} is already {}", i, node.name, other->first, other->second));
  }
}

void SpecReader::give_storage(NodeSpec& node, const YamlNode& at, const std::string& path,
                              const NicWishes& wishes) {
  const YamlNode* storage = child(child(&root_, "network"), "storage");
  if (!storage_ || !provisioning_ || storage_->overlaps(*provisioning_) || wishes.storage_port == kNone)
    return;
  PortSpec out;
  out.port = wishes.storage_port.empty() ? spec_.network.storage_port : wishes.storage_port;
  out.network = spec_.network.storage.cidr;
  out.address = address_in(*storage_, node, *child(storage, "cidr"), "network.storage.cidr");
  const bool both_found = out.port.empty() && !node.rails.empty() && node.rails.front().port.empty();
  if (both_found && spec_.network.rails.kind == "ethernet")
    error_once(at, path,
               fmt::format("the storage port of {} is not defined, and the rails take all remaining ports: "
                           "give network.storage.port, or `storage_port` in the role or node",
                           node.name));
  if (!out.address.empty()) node.storage = std::move(out);
}

void SpecReader::give_rails(NodeSpec& node, const NicWishes& role, const NicWishes& own) {
  const Rails& all = spec_.network.rails;
  const YamlNode* rails = child(child(&root_, "network"), "rails");
  const auto& ports = !own.rail_ports.empty()    ? own.rail_ports
                      : !role.rail_ports.empty() ? role.rail_ports
                                                 : all.ports;
  const int wanted = own.rails.value_or(role.rails.value_or(all.count));
  const size_t count = std::min(static_cast<size_t>(std::max(0, wanted)), rail_networks_.size());
  for (size_t i = 0; i < count; ++i) {
    const Cidr& net = rail_networks_[i];
    PortSpec out;
    out.address = address_in(net, node, *child(rails, "cidr"), "network.rails.cidr");
    if (out.address.empty()) return;
    out.port = i < ports.size() ? ports[i] : "";
    out.network = fmt::format("{}/{}", format_ipv4(net.base), net.prefix);
    if (i < rail_gateways_.size()) out.gateway = rail_gateways_[i];
    if (out.gateway == out.address)
      error_once(*child(rails, "gateway"), "network.rails.gateway",
                 fmt::format("{} is the address of {} on rail {}", out.gateway, node.name, i));
    node.rails.push_back(std::move(out));
  }
}

// `own`: the settings in the node's own entry.
void SpecReader::give_ports(NodeSpec& node, const NodeEntry& place, const NicWishes& role,
                            const NicWishes& own) {
  const char* key = child(place.entry, "rails")          ? "rails"
                    : child(place.entry, "storage_port") ? "storage_port"
                                                         : nullptr;
  const YamlNode& at = key ? *child(place.entry, key) : *place.entry;
  const std::string path = place.path + (key ? std::string(".") + key : "");
  const bool has_playbook = spec_.plays(node, "networks");
  if (key && node.adopt.declared())
    return error_once(at, path, "muster does not configure the network ports of an adopted host");
  if (key && !has_playbook)
    return error_once(
        at, path,
        fmt::format("is applied by the playbook 'networks', which role '{}' does not have", node.role));
  if (node.adopt.declared() || !has_playbook) return;
  give_rails(node, role, own);
  give_storage(node, at, path, own.storage_port.empty() ? role : own);
  check_same_port(node, at, path);
}

void SpecReader::assign_rails() {
  std::map<std::string, NicWishes> of_role;
  const YamlNode* roles = child(&root_, "roles");
  if (roles && roles->is_map())
    for (const YamlEntry& role : roles->entries) {
      const std::string path = "roles." + role.key;
      of_role[role.key] = read_wishes(&role.value, path, false);
      for (const char* key : {"rails", "storage_port"})
        if (const YamlNode* at = child(&role.value, key))
          must_have_playbook(*at, path + "." + key, "networks", role.key);
    }
  std::map<const YamlNode*, int> names;  // of each entry
  for (const auto& place : places_) ++names[place.entry];
  std::map<const YamlNode*, NicWishes> of_entry;
  for (size_t i = 0; i < spec_.nodes.size(); ++i) {
    const NodeEntry& place = places_[i];
    if (!of_entry.count(place.entry))
      of_entry[place.entry] = read_wishes(place.entry, place.path, names[place.entry] == 1);
    give_ports(spec_.nodes[i], place, of_role[spec_.nodes[i].role], of_entry[place.entry]);
  }
}

}  // namespace muster

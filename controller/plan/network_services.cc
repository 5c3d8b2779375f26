#include "controller/plan/network_services.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/resolver.h"
#include "controller/spec/address.h"

namespace muster {
namespace {

// The cluster itself, and what the spec declares; with the nodes' names, since not every program accepts
// networks.
std::string without_proxy(const Spec& spec) {
  std::string out = "localhost,127.0.0.1,::1," + spec.network.provisioning.cidr;
  if (spec.network.storage.declared()) out += "," + spec.network.storage.cidr;
  for (const auto& domain : spec.network.search) out += ",." + domain;
  for (const auto& node : spec.nodes) out += "," + node.name;
  for (const auto& other : spec.network.no_proxy) out += "," + other;
  return out;
}

// Returns the settings for section [Network] of the provisioning port's file; null if none is declared.
Json port_settings(const Network& network) {
  Json out;
  if (!network.gateway.empty()) out["Gateway"] = network.gateway;
  if (!network.dns.empty()) out["DNS"] = joined_by_blanks(network.dns);
  if (!network.search.empty()) out["Domains"] = joined_by_blanks(network.search);
  return out;
}

Json network_of(const Spec& spec, const NodeSpec& node) {
  const Network& n = spec.network;
  const bool ours = !node.adopt.declared();  // muster does not manage an adopted host's network
  const AptMirror apt = spec.apt_of(node);
  return {{"provisioning", n.provisioning.cidr},
          {"bmc", n.bmc.cidr},
          {"storage", n.storage.cidr},
          {"gateway", n.gateway},
          {"dns", n.dns},
          {"search", n.search},
          {"ntp", n.ntp},
          {"has_ntp", !n.ntp.empty()},
          {"proxy", n.proxy},
          {"no_proxy", n.proxy.empty() ? "" : without_proxy(spec)},
          {"apt_mirror", ours ? apt.mirror : ""},
          {"apt_security", ours ? apt.security : ""},
          {"apt_updates", apt.updates},
          {"apt_key", ours ? apt.key : ""},
          {"apt_distribution", ours && apt.declared() ? spec.mirrored_distribution(node).id : ""},
          {"resolver", ours && !n.dns.empty() ? resolver_text(n.dns, n.search) : ""},
          {"port_settings", ours ? port_settings(n) : Json()},
          {"foreign_dns", ours ? std::vector<std::string>() : n.dns}};
}

Json firewall_of(const Spec& spec, const NodeSpec& node) {
  Json out = Json::array();
  for (const auto& rule : spec.firewall) {
    if (!rule.roles.empty() && !std::count(rule.roles.begin(), rule.roles.end(), node.role)) continue;
    Json one = {{"comment", rule.comment.empty() ? "declared" : rule.comment}};
    if (!rule.from.empty()) one["from"] = rule.from;
    if (!rule.ports.empty()) one["ports"] = rule.ports;
    if (!rule.proto.empty()) one["proto"] = rule.proto;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Json services_of(const Spec& spec, const NodeSpec& node) {
  std::set<std::string> packages(spec.additions.packages.begin(), spec.additions.packages.end());
  std::map<std::string, std::string> sysctls = spec.additions.sysctls;
  if (const auto own = spec.role_additions.find(node.role); own != spec.role_additions.end()) {
    packages.insert(own->second.packages.begin(), own->second.packages.end());
    for (const auto& [key, value] : own->second.sysctls) sysctls[key] = value;
  }
  return {{"network", network_of(spec, node)},
          {"time_zone", spec.time_zone},
          {"firewall", firewall_of(spec, node)},
          {"packages", packages},
          {"sysctls", sysctls.empty() ? Json() : Json(sysctls)}};
}

void prefer_declared(const Json& sysctls, Json& params) {
  const auto values = params.find("values");
  if (!sysctls.is_object() || values == params.end() || !values->is_object()) return;
  for (auto& [key, value] : values->items())
    if (const auto declared = sysctls.find(key); declared != sysctls.end()) value = *declared;
}

namespace {

// Ports of obsolete services: discard, echo, daytime, chargen, time. The playbook opens none of them; it
// opens 22, 123 and all ports from 1024 on.
constexpr std::array<uint16_t, 5> kCandidates = {9, 7, 13, 19, 37};

// True if the address is in `network`, which is a network or an address; empty: any address.
bool is_from(const std::string& network, uint32_t address) {
  if (network.empty()) return true;
  if (const auto one = parse_ipv4(network)) return *one == address;
  const auto cidr = parse_cidr(network, 0, 32);
  return cidr.ok() && cidr->contains(address);
}

bool lets_in(const FirewallRule& rule, uint32_t address, uint16_t port) {
  if (rule.proto == "udp" || !is_from(rule.from, address)) return false;
  if (rule.ports.empty()) return true;
  const size_t colon = rule.ports.find(':');
  const int first = std::stoi(rule.ports),
            last = colon == std::string::npos ? first : std::stoi(rule.ports.substr(colon + 1));
  return first <= port && port <= last;
}

}  // namespace

std::optional<uint16_t> closed_port(const Spec& spec, const NodeSpec& node,
                                    const std::string& controller_address) {
  if (node.address == controller_address) return std::nullopt;
  const auto address = parse_ipv4(node.address);
  if (!address) return std::nullopt;
  // The provisioning and storage networks may be the same.
  if (const std::string& storage = spec.network.storage.cidr; !storage.empty() && is_from(storage, *address))
    return std::nullopt;
  for (const uint16_t port : kCandidates)
    if (std::none_of(spec.firewall.begin(), spec.firewall.end(),
                     [&](const FirewallRule& rule) { return lets_in(rule, *address, port); }))
      return port;
  return std::nullopt;
}

}  // namespace muster

#include "controller/boot/boot.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/kernel_line.h"
#include "base/lower.h"
#include "base/mac.h"
#include "base/split.h"

namespace muster {
namespace {

struct Net {
  uint32_t first = 0, last = 0;  // network and broadcast address, host byte order
  bool has(uint32_t a) const { return a > first && a < last; }
};

bool parse_address(const std::string& text, uint32_t& out) {
  in_addr a;
  if (::inet_pton(AF_INET, text.c_str(), &a) != 1) return false;
  out = ntohl(a.s_addr);
  return true;
}

std::string address_text(uint32_t a) {
  return fmt::format("{}.{}.{}.{}", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
}

Result<Net> parse_net(const std::string& cidr) {
  const size_t slash = cidr.find('/');
  uint32_t base = 0;
  const std::string bits = slash == std::string::npos ? "" : cidr.substr(slash + 1);
  if (bits.empty() || bits.size() > 2 || bits.find_first_not_of("0123456789") != std::string::npos ||
      !parse_address(cidr.substr(0, slash), base) || std::stoi(bits) < 8 || std::stoi(bits) > 30)
    return fail(Code::invalid, "not an IPv4 network from /8 to /30: \"" + cidr + "\"");
  const uint32_t mask = ~0u << (32 - std::stoi(bits));
  return Net{base & mask, (base & mask) | ~mask};
}

bool only(const std::string& s, const char* allowed) {
  return !s.empty() && s.find_first_not_of(allowed) == std::string::npos;
}

constexpr const char* kName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

Result<std::string> host_lines(const BootNetwork& network, const Net& net) {
  std::string out;
  std::set<std::string> macs, addresses = {network.address};
  for (const auto& h : network.hosts) {
    uint32_t a = 0;
    if (!is_mac(h.mac))
      return fail(Code::invalid, fmt::format("{}: not a MAC address: \"{}\"", h.name, h.mac));
    if (!only(h.name, kName)) return fail(Code::invalid, "not a host name: \"" + h.name + "\"");
    if (!parse_address(h.address, a) || !net.has(a))
      return fail(Code::invalid, fmt::format("{}: {} is not in {}", h.name, h.address, network.cidr));
    if (!macs.insert(h.mac).second)
      return fail(Code::invalid, fmt::format("{}: MAC {} is declared twice", h.name, h.mac));
    if (!addresses.insert(h.address).second)
      return fail(Code::invalid, fmt::format("{}: address {} is already in use", h.name, h.address));
    out += fmt::format("dhcp-host={},{},{},12h\n", h.mac, h.address, h.name);
  }
  return out;
}

// Address ranges for undeclared machines: the upper quarter of the network, without declared addresses, which
// start at the lower end, and without all addresses known to be in use.
std::string pool_lines(const BootNetwork& network, const Net& net, const std::string& mask) {
  std::set<uint32_t> taken = {net.last - 1};  // often the address of a router
  std::vector<std::string> texts = network.taken;
  texts.insert(texts.end(), {network.address, network.gateway});
  for (const auto& host : network.hosts) texts.push_back(host.address);
  for (const auto& text : texts)
    if (uint32_t address = 0; parse_address(text, address)) taken.insert(address);
  std::string out;
  uint32_t from = net.last - (net.last - net.first + 1) / 4;
  for (uint32_t a = from; a < net.last; ++a) {
    if (!taken.count(a)) continue;
    if (from < a)
      out += fmt::format("dhcp-range={},{},{},12h\n", address_text(from), address_text(a - 1), mask);
    from = a + 1;
  }
  return out;
}

std::string range_lines(const BootNetwork& network, const Net& net) {
  const std::string mask = address_text(~(net.last - net.first));
  if (network.mode == "proxy")
    return fmt::format("dhcp-range={},proxy,{}\npxe-service=tag:!ipxe,X86-64_EFI,\"muster\",snponly.efi\n",
                       address_text(net.first), mask);
  const std::string known = fmt::format("dhcp-range={},static,{},12h\n", address_text(net.first), mask);
  return network.unknown_machines ? known + pool_lines(network, net, mask) : known;
}

bool plain(const std::string& s) {
  return std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return c > 32 && c < 127 && c != '$' && c != '\\' && c != '"' && c != '\'';
  });
}

}  // namespace

Result<std::string> dnsmasq_config(const BootNetwork& network) {
  if (network.mode != "managed" && network.mode != "proxy")
    return fail(Code::invalid, "dnsmasq does not run in mode \"" + network.mode + "\"");
  TRY(const Net net, parse_net(network.cidr));
  uint32_t own = 0;
  if (!parse_address(network.address, own) || !net.has(own))
    return fail(Code::invalid,
                fmt::format("the controller's address {} is not in {}", network.address, network.cidr));
  if (!only(network.interface, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."))
    return fail(Code::invalid, "not an interface name: \"" + network.interface + "\"");
  TRY(const std::string hosts, host_lines(network, net));
  const std::string& dir = network.run_dir;
  std::string out =
      "# Written by musterd; changes are lost.\n"
      "port=0\nno-resolv\nno-hosts\nkeep-in-foreground\n";
  // Before an address is given to an undeclared machine, dnsmasq pings it: an unknown machine may have it.
  if (!network.unknown_machines) out += "no-ping\n";
  // bind-dynamic: until the first machine is switched on, a bridge lacks the IPv6 address that router
  // advertisements need.
  out += fmt::format("interface={}\nexcept-interface=lo\nbind-dynamic\nuser={}\n", network.interface,
                     network.user);
  out += fmt::format("dhcp-leasefile={0}/leases\npid-file=\nlog-facility={0}/dnsmasq.log\n", dir);
  out += fmt::format("enable-tftp={}\ntftp-root={}/tftp\n", network.interface, dir);
  if (network.mode == "managed") {
    // Only declared machines may get a NAK: other machines on this network, including adopted hosts, have
    // addresses from other sources and would drop them. While undeclared machines are served, the two cannot
    // be distinguished, so nothing is rejected.
    out += network.unknown_machines ? "" : "dhcp-authoritative\ndhcp-ignore=tag:!known\n";
    out += network.gateway.empty() ? "dhcp-option=option:router\n"
                                   : fmt::format("dhcp-option=option:router,{}\n", network.gateway);
    out += "dhcp-option=option:dns-server\n";
  }
  out += range_lines(network, net);
  // iPXE waits up to 16 s for IPv6 without a router advertisement; lifetime 0: not a default router.
  out += fmt::format("enable-ra\ndhcp-range={},ra-stateless,64\nra-param={},high,10,0\n", kRaPrefix,
                     network.interface);
  out +=
      "dhcp-option=tag:ipxe,encap:175,176,1b\n"
      "dhcp-match=set:ipxe,175\ndhcp-match=set:efi,option:client-arch,7\ndhcp-match=set:efi,option:client-"
      "arch,9\n";
  if (network.mode == "managed") out += "dhcp-boot=tag:!ipxe,tag:efi,snponly.efi\n";
  out += fmt::format("dhcp-boot=tag:ipxe,http://{}:{}/boot.ipxe\n", network.address, network.http_port);
  return out + hosts;
}

// Format: expiry, MAC, address, name, client id. IPv6 leases have a number as MAC, or begin with "duid".
std::string leases_kept(const std::string& leases, const BootNetwork& network) {
  std::set<std::string> taken(network.taken.begin(), network.taken.end());
  taken.erase("");  // a node without a BMC
  std::string out;
  for (const std::string& line : split_lines(leases)) {
    std::istringstream words(line);
    std::string until, mac, address;
    words >> until >> mac >> address;
    bool contradicts = taken.count(address) > 0;
    for (const auto& host : network.hosts)
      contradicts = contradicts || (host.address == address) != (lower(host.mac) == lower(mac));
    if (!contradicts) out += line + "\n";
  }
  return out;
}

std::string wrong_ram_arguments(const BootDecision& d) {
  for (const auto* value :
       {&d.url, &d.pin, &d.token, &d.node, &d.ip, &d.mac, &d.base_url, &d.kernel, &d.initrd})
    if (!plain(*value)) return "a value contains a character that is not allowed on a kernel's command line";
  if (const std::string wrong = wrong_console(d.console); !wrong.empty()) return "console: " + wrong;
  const std::string wrong = wrong_kernel_options(d.extra);
  return wrong.empty() ? "" : "kernel options: " + wrong;
}

std::string ram_arguments(const BootDecision& d) {
  if (!wrong_ram_arguments(d).empty()) return "";
  std::string args = "quiet" + console_arguments(d.console);
  args += fmt::format(" muster.url={} muster.pin={} muster.token={} muster.node={}", d.url, d.pin, d.token,
                      d.node);
  if (d.dhcp_prefix > 0)
    args += fmt::format(" muster.ip=${{netX/ip}}/{}", d.dhcp_prefix);
  else if (!d.ip.empty())
    args += " muster.ip=" + d.ip;
  if (!d.mac.empty()) args += " muster.mac=" + d.mac;
  if (d.give_up > 0) args += fmt::format(" muster.give_up={}", (d.give_up + kSecond - 1) / kSecond);
  if (kernel_argument(d.extra, "panic").empty()) args += std::string(" ") + kRestartAfterPanic;
  if (!d.extra.empty()) args += " " + d.extra;
  return args;
}

std::string ipxe_script(const BootDecision& d) {
  if (!d.ram) return kBootFromDisk;
  const std::string args = ram_arguments(d);
  if (args.empty()) return kBootFromDisk;
  return fmt::format(
      "#!ipxe\nkernel {0}{1} initrd=initrd {3} || exit 1\ninitrd --name initrd {0}{2} || exit 1\nboot || "
      "exit 1\n",
      d.base_url, d.kernel, d.initrd, args);
}

}  // namespace muster

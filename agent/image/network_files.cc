#include "agent/image/network_files.h"

#include <fmt/format.h>

#include "base/resolver.h"

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

}  // namespace muster

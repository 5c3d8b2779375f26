#include "host/rails.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/json_dump.h"
#include "base/pci_address.h"
#include "base/record.h"
#include "base/split.h"
#include "host/gids.h"
#include "host/port_ability.h"
#include "host/rdma_devices.h"

namespace muster {

MUSTER_RECORD(PortRecord, lenient, rail, interface, opt(pci), opt(address))
MUSTER_RECORD(NetworksRecord, lenient, opt(provisioning), ports, sparse(traffic_class))

namespace {

constexpr const char* kNet = "/sys/class/net/";

// Returns the last PCI address in the path to a device: virtio devices are one level below theirs.
std::string last_pci(const Result<std::string>& link) {
  std::string found;
  if (!link.ok()) return found;
  for (const std::string& part : split(*link, '/'))
    if (is_pci_address(part)) found = part;
  return found;
}

}  // namespace

bool is_ordinary(const Files& files, const std::string& interface) {
  std::vector<std::string> carriers;
  for (const std::string& line : split_lines(files.read("/proc/net/route").value_or("")))
    if (const auto words = split_words(line); words.size() > 1 && words[1] == "00000000")
      carriers.push_back(words[0]);
  // The kernel adds IPv6 ones for ports with router advertisements: they decide only where IPv4 does not.
  const bool has_ipv4 = !carriers.empty();
  for (const std::string& line : split_lines(files.read("/proc/net/ipv6_route").value_or("")))
    if (const auto words = split_words(line);
        !has_ipv4 && words.size() > 9 && words[0] == std::string(32, '0') && words[1] == "00")
      carriers.push_back(words[9]);
  if (const auto record = read_networks_record(files); record.ok() && !record->provisioning.empty())
    carriers.push_back(record->provisioning);
  const auto own = ports_below(files, interface);
  return std::any_of(carriers.begin(), carriers.end(), [&](const std::string& carrier) {
    const auto ports = ports_below(files, carrier);
    return std::find_first_of(own.begin(), own.end(), ports.begin(), ports.end()) != own.end();
  });
}

int fabric_ports(const Files& files) {
  int out = 0;
  for (const RdmaPart& part : rdma_parts(files)) {
    if (!part.active()) continue;
    if (part.layer == LinkLayer::ethernet) {
      const std::string interface = files.read_line(part.folder + "/gid_attrs/ndevs/0");
      if (roce_gids(files, part.folder).empty() || is_ordinary(files, interface)) continue;
    }
    ++out;
  }
  return out;
}

std::string PortRecord::title() const {
  return rail < 0 ? std::string("storage port") : fmt::format("rail {}", rail);
}

std::vector<PortRecord> NetworksRecord::rails() const {
  std::vector<PortRecord> out;
  for (const auto& port : ports)
    if (port.rail >= 0) out.push_back(port);
  return out;
}

const PortRecord* NetworksRecord::find(int rail) const {
  const auto at =
      std::find_if(ports.begin(), ports.end(), [&](const PortRecord& p) { return p.rail == rail; });
  return at == ports.end() ? nullptr : &*at;
}

Result<NetworksRecord> read_networks_record(const Files& files) {
  if (!files.exists(kNetworksRecord)) return NetworksRecord{};
  TRY(const std::string text, files.read(kNetworksRecord));
  TRY(const Json json, parse_json(text));
  return read_record<NetworksRecord>(json, kNetworksRecord);
}

std::string networks_record_text(const NetworksRecord& record) {
  return dump_json(record_json(record), 1) + "\n";
}

std::string pci_of_interface(const Files& files, const std::string& interface) {
  const std::string found = last_pci(files.read_link(kNet + interface + "/device"));
  return found.empty() ? last_pci(files.read_link(kNet + interface)) : found;
}

std::string way_to_interface(const Files& files, const std::string& interface) {
  const auto own = files.read_link(kNet + interface);
  return own.ok() ? *own : files.read_link(kNet + interface + "/device").value_or("");
}

// The kernel shows the interface of an RDMA device's Ethernet port (also of a software device); an InfiniBand
// port is recognised by its PCI function and its port number there.
RdmaName rdma_of_interface(const Files& files, const std::string& interface) {
  const std::string pci = pci_of_interface(files, interface);
  const int number = std::atoi(files.read_line(kNet + interface + "/dev_port", "0").c_str()) + 1;
  RdmaName by_pci;
  for (const RdmaPart& part : rdma_parts(files)) {
    const RdmaName name{part.device, part.port, part.only};
    const std::string netdev = files.read_line(part.folder + "/gid_attrs/ndevs/0");
    if (netdev == interface) return name;
    const bool here = !pci.empty() && part.pci == pci && (part.only || part.port == number);
    if (netdev.empty() && here) by_pci = name;
  }
  return by_pci;
}

}  // namespace muster

#include "host/port_ability.h"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include "base/pci_address.h"
#include "base/scan.h"
#include "base/split.h"
#include "host/vital_data.h"

namespace muster {
namespace {

constexpr const char* kNetClass = "/sys/class/net/";
constexpr const char* kPciDevices = "/sys/bus/pci/devices/";

struct Modes {
  int first, last, mbps;  // bits of ethtool_link_mode_bit_indices (linux/ethtool.h, 6.12)
};
constexpr Modes kModes[] = {
    {0, 1, 10},       {2, 3, 100},        {4, 5, 1000},       {12, 12, 10000},    {15, 15, 2500},
    {17, 17, 1000},   {18, 19, 10000},    {21, 22, 20000},    {23, 26, 40000},    {27, 30, 56000},
    {31, 33, 25000},  {34, 35, 50000},    {36, 39, 100000},   {40, 40, 50000},    {41, 41, 1000},
    {42, 46, 10000},  {47, 47, 2500},     {48, 48, 5000},     {52, 56, 50000},    {57, 61, 100000},
    {62, 66, 200000}, {67, 67, 100},      {68, 68, 1000},     {69, 73, 400000},   {75, 79, 100000},
    {80, 84, 200000}, {85, 89, 400000},   {90, 91, 100},      {92, 92, 10},       {93, 98, 800000},
    {99, 101, 10},    {103, 108, 200000}, {109, 114, 400000}, {115, 120, 800000}, {121, 124, 1600000}};
constexpr int kTwistedPair = 7;

bool has_bit(const std::vector<uint32_t>& words, int bit) {
  const size_t word = static_cast<size_t>(bit) / 32;
  return word < words.size() && (words[word] >> (bit % 32) & 1) != 0;
}

struct LinkModes {
  std::vector<uint32_t> supported, partner;
};

// The kernel first returns how many words its masks have, as a negative number.
std::optional<LinkModes> link_modes(const std::string& interface) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  constexpr size_t kMostWords = 3 * 127;
  alignas(
      ethtool_link_settings) char buffer[sizeof(ethtool_link_settings) + kMostWords * sizeof(uint32_t)] = {};
  auto* settings = reinterpret_cast<ethtool_link_settings*>(buffer);
  ifreq request = {};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = buffer;
  settings->cmd = ETHTOOL_GLINKSETTINGS;
  bool read = ::ioctl(fd, SIOCETHTOOL, &request) == 0 && settings->link_mode_masks_nwords < 0;
  if (read) {
    const auto words = static_cast<__s8>(-settings->link_mode_masks_nwords);
    std::memset(buffer, 0, sizeof buffer);
    settings->cmd = ETHTOOL_GLINKSETTINGS;
    settings->link_mode_masks_nwords = words;
    read = ::ioctl(fd, SIOCETHTOOL, &request) == 0 && settings->link_mode_masks_nwords == words;
  }
  ::close(fd);
  if (!read) return {};
  const size_t words = static_cast<size_t>(settings->link_mode_masks_nwords);
  std::vector<uint32_t> all(3 * words);  // supported, advertised, the partner's
  std::memcpy(all.data(), buffer + sizeof(ethtool_link_settings), all.size() * sizeof(uint32_t));
  const auto part = [&](size_t i) {
    return std::vector<uint32_t>(all.begin() + static_cast<long>(i * words),
                                 all.begin() + static_cast<long>((i + 1) * words));
  };
  return LinkModes{part(0), part(2)};
}

// The first item of vital product data: a tag, its length in two bytes, and the product's name.
std::string product_name(const Files& files, const std::string& device) {
  constexpr char kName = '\x82';
  const std::string data = vital_data(files, device);
  if (data.size() < 3 || data[0] != kName) return "";
  const size_t length = static_cast<unsigned char>(data[1]) + 256U * static_cast<unsigned char>(data[2]);
  return trim(data.substr(3, length));
}

double number_at(const Files& files, const std::string& path) {
  return std::strtod(files.read_line(path).c_str(), nullptr);
}

// Of a link that both ends report: lanes and GT/s.
struct Link {
  double width = 0, speed = 0;
  // 8b/10b up to 5 GT/s, then 128b/130b, FLITs of 236 in 256 bytes at 64; headers take a tenth at the usual
  // payload of 256 bytes per packet.
  double gbps() const {
    const double code = speed <= 5 ? 0.8 : speed < 64 ? 128.0 / 130 : 236.0 / 256;
    return width * speed * code * 0.9;
  }
};

std::optional<Link> link_between(const Files& files, const std::string& port, const std::string& device) {
  Link out;
  for (const auto& end : {port, device}) {
    const double width = number_at(files, end + "/max_link_width"),
                 speed = number_at(files, end + "/max_link_speed");
    if (width < 1 || width > 32 || speed <= 0) return {};
    out.width = out.width > 0 ? std::min(out.width, width) : width;
    out.speed = out.speed > 0 ? std::min(out.speed, speed) : speed;
  }
  return out;
}

// The devices on the way from the root complex to this one:
// "../../../devices/pci0000:00/0000:00:01.0/0000:3b:00.0".
std::vector<std::string> way_to(const Files& files, const std::string& pci) {
  std::vector<std::string> out;
  for (const std::string& part : split(files.read_link(kPciDevices + pci).value_or(""), '/'))
    if (is_pci_address(part)) out.push_back(part);
  return out;
}

}  // namespace

double gbps_of_link_modes(const std::vector<uint32_t>& words) {
  int most = 0;
  for (const Modes& modes : kModes)
    for (int bit = modes.first; bit <= modes.last; ++bit)
      if (has_bit(words, bit)) most = std::max(most, modes.mbps);
  return most / 1000.0;
}

double gbps_of_product(const std::string& name) {
  double most = 0;
  for (const auto& [word, gbps] :
       {std::pair{"FDR", 56.0}, {"EDR", 100.0}, {"HDR", 200.0}, {"NDR", 400.0}, {"XDR", 800.0}}) {
    for (size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
      if (at > 0 && is_alphanumeric(name[at - 1])) continue;
      // HDR100 and NDR200 are half of it.
      const double own = std::strtod(name.c_str() + at + 3, nullptr);
      const bool number = at + 3 < name.size() && is_digit(name[at + 3]);
      most = std::max(most, number ? own : gbps);
    }
  }
  for (const char* unit : {"GbE", "GigE", "Gb/s", "Gbps", "GE "})
    for (size_t at = name.find(unit); at != std::string::npos; at = name.find(unit, at + 1)) {
      size_t begin = at;
      while (begin > 0 && name[begin - 1] == ' ') --begin;
      while (begin > 0 && (is_digit(name[begin - 1]) || name[begin - 1] == '.')) --begin;
      most = std::max(most, std::strtod(name.c_str() + begin, nullptr));
    }
  return most;
}

PortAbility port_ability(const Files& files, const std::string& interface, const std::string& device) {
  PortAbility out;
  const bool here = files.root().empty() || files.root() == "/";  // a recorded machine has no drivers
  if (const auto modes = here && !interface.empty() ? link_modes(interface) : std::nullopt) {
    out.gbps = gbps_of_link_modes(modes->supported);
    out.source = "its supported link modes";
    if (has_bit(modes->supported, kTwistedPair)) out.partner_gbps = gbps_of_link_modes(modes->partner);
  }
  if (out.gbps > 0) return out;
  const std::string name = product_name(files, device);
  out.gbps = gbps_of_product(name);
  out.source = out.gbps > 0 ? "its product name: " + name : "";
  return out;
}

std::string port_place(const std::string& pci, int number, bool only) {
  return pci.empty() || only ? pci : fmt::format("{}/{}", pci, number);
}

std::string adapter_model(const Files& files, const std::string& device) {
  const auto id = [&](const char* name) {
    const std::string text = files.read_line(device + "/" + name);
    return text.starts_with("0x") ? text.substr(2) : text;
  };
  const std::string vendor = id("vendor"), board = id("subsystem_device");
  if (vendor.empty()) return "";
  return fmt::format("{}:{}{}", vendor, id("device"),
                     board.empty() ? "" : fmt::format(" {}:{}", id("subsystem_vendor"), board));
}

double interface_gbps(const Files& files, const std::string& interface) {
  const double mbps = number_at(files, kNetClass + interface + "/speed");
  constexpr double kUnknown = 4294967295.0;  // -1, as some drivers report it
  return mbps > 0 && mbps < kUnknown ? mbps / 1000 : 0;
}

std::vector<std::string> ports_below(const Files& files, const std::string& interface) {
  std::set<std::string> out, seen;
  std::vector<std::string> open = {interface};
  while (!open.empty()) {
    const std::string one = open.back();
    open.pop_back();
    if (!seen.insert(one).second) continue;
    if (files.exists(kNetClass + one + "/device")) {
      out.insert(one);
      continue;
    }
    for (const auto& name : files.list(kNetClass + one))
      if (name.starts_with("lower_")) open.push_back(name.substr(6));
  }
  return {out.begin(), out.end()};
}

std::map<std::string, PcieShare> pcie_shares(const Files& files, const std::vector<std::string>& pci) {
  struct Seen {
    Link link;
    int ports = 0;
  };
  std::map<std::string, Seen> links;  // by the port at the upper end
  std::map<std::string, std::vector<std::string>> passed;
  for (const auto& address : pci) {
    const auto way = way_to(files, address);
    // A link joins a device with the port above it; the ports of one switch are not joined by a link.
    for (size_t lower = way.size(); lower >= 2; lower = lower > 2 ? lower - 2 : 0) {
      const std::string &device = way[lower - 1], &port = way[lower - 2];
      const auto link = link_between(files, kPciDevices + port, kPciDevices + device);
      if (!link) break;
      links[port].link = *link;
      ++links[port].ports;
      passed[address].push_back(port);
    }
  }
  std::map<std::string, PcieShare> out;
  for (const auto& [address, ports] : passed)
    for (const auto& port : ports) {
      const Seen& seen = links.at(port);
      const double gbps = seen.link.gbps() / seen.ports;
      PcieShare& share = out[address];
      if (share.gbps > 0 && share.gbps <= gbps) continue;
      const double slot = port == ports.front() ? gbps : share.slot_gbps;
      share = {gbps, seen.ports, fmt::format("x{:.0f} at {:.4g} GT/s", seen.link.width, seen.link.speed),
               slot};
    }
  return out;
}

}  // namespace muster

// Health of network adapters as mlx5_core reports it: drivers/net/ethernet/mellanox/mlx5/core/health.c,
// events.c and cmd.c of Linux 5.10 to 6.12, and the same driver of NVIDIA's DOCA. Transmit queues that any
// driver's port did not empty in time: net/sched/sch_generic.c of the same kernels.
#include <algorithm>
#include <cstdlib>
#include <regex>

#include "base/split.h"
#include "host/net_ports.h"
#include "kernels/counters/log_lines.h"

namespace muster::kernels {
namespace {

// "mlx5_core 0000:08:00.0: print_health_info:425:(pid 912): Health issue observed, ...". Messages for the
// network device have its name before the colon.
const std::regex kMlx5(
    R"(^mlx5_core ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])(?: [^ :]+)?: (.*)$)");
// The health buffer of the firmware: from 5.16 on with a heading that has the severity; before, and after the
// heading, the syndrome by number.
const std::regex kHealth(R"(\bHealth issue observed, .*, severity\((\d+)\))");
const std::regex kSyndrome(R"(\bsynd 0x[0-9a-f]+: )");
const std::regex kBroken(
    R"(\b(?:device's health compromised|PCI slot is unavailable|health recovery flow aborted|)"
    // A command that the firmware did not carry out.
    R"(timeout\. Will cause a leak of a command resource|)"
    R"(High temperature on sensors with bit set|Port module event\[error\]: module \d+, Cable error))");
// "NETDEV WATCHDOG: eth0 (ice): transmit queue 3 timed out"; later "ice 0000:08:00.0 eth0: NETDEV WATCHDOG:
// CPU: 3: transmit queue 5 timed out 5016 ms". Of a program that crashes only 15 characters come first.
const std::regex kStuck(R"(^(?:NETDEV WATCHDOG: ([^ :()]{1,15}) \([^()]*\)|)"
                        R"([^ :]{1,31} [^ ]{1,31} ([^ :]{1,15}): NETDEV WATCHDOG: CPU: \d+))"
                        R"(: transmit queue \d+ timed out\b)");
constexpr int kError = 3;  // LOGLEVEL_ERR; lower numbers are worse

}  // namespace

// Only of a port that counts: not of a virtual function, a BMC's network over USB, a tunnel.
NicLine NicLines::stuck(const std::string& interface) const {
  const auto ports = net_ports(files_);
  const auto port =
      std::find_if(ports.begin(), ports.end(), [&](const NetPort& one) { return one.name == interface; });
  if (port == ports.end()) return {};
  return {port->pci.empty() ? port->name : port->pci, true};
}

NicLine NicLines::read(const std::string& text) {
  std::smatch found;
  if (has(text, "NETDEV WATCHDOG: ") && std::regex_search(text, found, kStuck))
    return stuck(found[found[1].matched ? 1 : 2]);
  if (!text.starts_with("mlx5_core ") || !std::regex_match(text, found, kMlx5)) return {};
  const std::string address = found[1], message = found[2];
  if (std::regex_search(message, found, kHealth)) {
    announced_.insert(address);
    return {address, std::atoi(found[1].str().c_str()) <= kError};
  }
  if (std::regex_search(message, kSyndrome)) {
    if (announced_.erase(address) > 0) return {};
    return {address, true};
  }
  if (std::regex_search(message, kBroken)) return {address, true};
  return {};
}

}  // namespace muster::kernels

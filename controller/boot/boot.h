// Network boot: dnsmasq's configuration (DHCP, TFTP, router advertisements) and iPXE scripts. No I/O.
//
// Boot sequence of a machine: firmware PXE -> DHCP -> TFTP snponly.efi (only when the NIC has no iPXE of its
// own) -> DHCP again as iPXE -> http://CTRL:7480/boot.ipxe -> boot/MAC.ipxe -> RAM system, or "exit 1" to the
// next entry of the boot order (its disk). TFTP and plain HTTP have no authentication: see
// docs/threat-model.md. Thread safety: plain value types, stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ports.h"
#include "base/result.h"
#include "base/time.h"

namespace muster {

struct BootHost {
  std::string mac;      // "52:54:00:00:01:01"
  std::string address;  // "10.20.0.11"
  std::string name;     // "node01"
};

struct BootNetwork {
  std::string mode =
      "managed";  // managed: DHCP is ours; proxy: another DHCP server gives addresses; external: nothing runs
  std::string interface;     // the only interface that dnsmasq listens on
  std::string address;       // the controller's on that interface: "10.20.0.1"
  std::string cidr;          // "10.20.0.0/24"
  std::string gateway = {};  // empty: machines get no default route
  uint16_t http_port = kBootPort;
  std::vector<BootHost> hosts = {};
  bool unknown_machines =
      false;  // discovery: undeclared machines get an address from the upper quarter of the network
  std::vector<std::string> taken = {};  // addresses that undeclared machines never get, such as those of BMCs
  std::string run_dir;                  // leases, pid, log and the TFTP root; `user` must reach it
  std::string user = "dnsmasq";         // the user that dnsmasq runs as
};
// Router advertisements announce it, since iPXE would otherwise wait 16 s for IPv6; machines do not use it.
inline constexpr const char* kRaPrefix = "fd6d:7573:7465:7200::";

// For dnsmasq's --conf-file. Code::invalid: an address outside the network, or a malformed value.
Result<std::string> dnsmasq_config(const BootNetwork& network);

// Returns `leases` (dnsmasq's lease file) without the leases that contradict a declaration: a lease on a
// declared host's address for a different MAC, or of its MAC on a different address, would keep that address
// from the host until it expires, even across restarts.
std::string leases_kept(const std::string& leases, const BootNetwork& network);

// The script that boots from disk. It ends with a failure: after a success, firmware that follows the UEFI
// specification stops at its boot menu instead of going on to the next entry of its boot order.
inline constexpr const char* kBootFromDisk = "#!ipxe\nexit 1\n";
// GET /boot.ipxe: chains to the machine's own script; boots from disk if there is none, or after it ends.
inline constexpr const char* kBootChain = "#!ipxe\nchain boot/${mac:hexhyp}.ipxe ||\nexit 1\n";

struct BootDecision {
  bool ram = false;      // false: boot from disk; the other members are unused
  std::string base_url;  // "http://10.20.0.1:7480"
  std::string kernel = "/ram/vmlinuz";
  std::string initrd = "/ram/initrd";
  std::string console = {};  // "ttyS0"; empty: the firmware's default
  // Kernel command line of the RAM system.
  std::string url, pin, token, node, ip, mac;
  int dhcp_prefix = 0;  // instead of `ip`: iPXE inserts the address from DHCP, with this prefix length
  // If greater than 0: the machine was not reset and has a system to return to (agent/boot/ram_init.h); the
  // RAM system returns to it if it has not joined within this time.
  DurationMs give_up = 0;
  std::string extra = {};  // more kernel arguments, separated by spaces; `panic=` among them replaces ours
};
// Why a value is invalid (it would end the line or script, or start an argument); "" if all are valid.
std::string wrong_ram_arguments(const BootDecision& decision);
// Returns the RAM system's kernel command line; "" if a value is invalid. Without `ip` and `mac`, which a
// node that runs a system adds itself, it contains no network settings.
std::string ram_arguments(const BootDecision& decision);
// Returns the script for GET /boot/MAC.ipxe; if a value is invalid, the script that boots from disk.
std::string ipxe_script(const BootDecision& decision);

}  // namespace muster

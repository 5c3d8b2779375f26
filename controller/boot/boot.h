// What machines get when they boot over the network: configuration of dnsmasq (DHCP, TFTP, router
// advertisements) and iPXE scripts. Pure: values in, text out.
//
// Way of a machine: firmware PXE -> DHCP -> TFTP snponly.efi (only when the NIC has no iPXE of its own) ->
// DHCP again as iPXE -> http://CTRL:7480/boot.ipxe -> boot/MAC.ipxe -> RAM system, or "exit 1" to the next
// entry of the boot order (its disk). TFTP and plain HTTP have no authentication: see docs/threat-model.md.
// Thread: plain values, pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  std::string interface;     // the only one dnsmasq listens on
  std::string address;       // the controller's on it: "10.20.0.1"
  std::string cidr;          // "10.20.0.0/24"
  std::string gateway = {};  // empty: machines get no default route
  uint16_t http_port = 7480;
  std::vector<BootHost> hosts = {};
  bool unknown_machines =
      false;  // discovery: undeclared machines get an address from the upper quarter of the network
  std::vector<std::string> taken = {};  // never given to them: addresses of BMCs, for one
  std::string run_dir;                  // leases, pid, log and the TFTP root live here
  std::string user = "root";            // dnsmasq's own after start
};
// Network announced by router advertisements, which keep iPXE from waiting 16 s for IPv6. Machines make no
// use of it.
inline constexpr const char* kRaPrefix = "fd6d:7573:7465:7200::";

// Text for --conf-file. Code::invalid when an address is outside the network, or a name, MAC or address is
// not one.
Result<std::string> dnsmasq_config(const BootNetwork& network);

// The leases of dnsmasq's file that contradict no declaration: a lease on a declared host's address for
// another MAC, or of its MAC on another address, would keep that address from the host until it expires, over
// restarts too.
std::string leases_kept(const std::string& leases, const BootNetwork& network);

// The script that boots from disk. It ends with a failure: after a success, firmware that follows the UEFI
// specification stops at its boot menu instead of going on to the next entry of its boot order.
inline constexpr const char* kBootFromDisk = "#!ipxe\nexit 1\n";
// GET /boot.ipxe: chains to the machine's own script, and boots from disk if there is none, or it ended.
inline constexpr const char* kBootChain = "#!ipxe\nchain boot/${mac:hexhyp}.ipxe ||\nexit 1\n";

struct BootDecision {
  bool ram = false;      // false: boot from disk, everything below is unused
  std::string base_url;  // "http://10.20.0.1:7480"
  std::string kernel = "/ram/vmlinuz";
  std::string initrd = "/ram/initrd";
  std::string console = {};  // "ttyS0"; empty: the firmware's default
  // Kernel command line of the RAM system.
  std::string url, pin, token, node, ip, mac;
  int dhcp_prefix = 0;  // instead of `ip`: iPXE inserts the address that DHCP gave, with this prefix length
  // More than 0: the machine was not reset and has a system to go back to (agent/ram_init.h). The RAM system
  // gives up if it has not joined within this time.
  DurationMs give_up = 0;
  std::string extra = {};  // more kernel arguments, separated by spaces; `panic=` among them replaces ours
};
// Why there is no such command line or script: a value could end it or start another argument. "" if there is
// one.
std::string wrong_ram_arguments(const BootDecision& decision);
// The RAM system's kernel command line; "" where a value is wrong. Without `ip` and `mac`, which a node that
// runs a system adds itself, it has nothing about the network.
std::string ram_arguments(const BootDecision& decision);
// GET /boot/MAC.ipxe. A value that is wrong gives the script that boots from disk.
std::string ipxe_script(const BootDecision& decision);

}  // namespace muster

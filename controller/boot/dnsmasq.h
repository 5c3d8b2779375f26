// Dnsmasq: runs dnsmasq as a child of the daemon, for the provisioning network only.
//
// Owned by the daemon. apply() makes the child match a network: writes configuration and TFTP root, starts
// it, restarts it when the configuration changed or it died, stops it when the mode is "external". Leases
// that contradict the declared hosts are removed first. The child dies with the daemon. It never has root's
// rights: its user can write to the leases and the log only. apply() returns Code::denied if that user cannot
// enter the folder, and if the interface does not have the controller's address of that network: a DHCP
// server disrupts a network that is not its own. While dnsmasq runs, the interface also has the address
// kRaPrefix + "1", which router advertisements need. Thread: one at a time; each call blocks for at most
// about a second.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "controller/boot/boot.h"
#include "sys/os.h"

namespace muster {

struct DnsmasqOptions {
  std::string program = "dnsmasq";
  std::string ipxe = "/usr/lib/ipxe/snponly.efi";
};

class Dnsmasq {
 public:
  explicit Dnsmasq(DnsmasqOptions options = {});
  ~Dnsmasq();
  Dnsmasq(const Dnsmasq&) = delete;
  Dnsmasq& operator=(const Dnsmasq&) = delete;

  // `network.interface` may be empty: the interface with `network.address` is used.
  Status apply(BootNetwork network);
  bool running();
  void stop();

 private:
  Status start(const BootNetwork& network, const std::string& config);

  DnsmasqOptions options_;
  std::string config_ = {};     // configuration of the running child
  std::string interface_ = {};  // on which it listens
  int pid_ = -1;
};

// The IPv4 addresses of this machine, each with the name of its interface.
Result<std::map<std::string, std::string>> interfaces_by_address();
// Returns the name of the interface with `address` ("10.20.0.1"); else not_found.
Result<std::string> interface_of(const std::string& address);

}  // namespace muster

// DhcpService: runs dnsmasq as the spec requires. Checks it at intervals and restarts it if it died. Thread:
// the reactor's; dnsmasq itself is controlled from the worker pool, one call at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "controller/boot/boot.h"
#include "controller/options/options.h"
#include "controller/spec/spec.h"
#include "sys/reactor.h"

namespace muster {

class Dnsmasq;

class DhcpService {
 public:
  // An error of dnsmasq is stored in problems["dhcp"].
  DhcpService(RealReactor& reactor, const DaemonOptions& options,
              std::map<std::string, std::string>& problems);
  ~DhcpService();
  // `unknown_machines`: undeclared machines also get an address.
  void apply(const Spec& spec, const std::string& address, bool unknown_machines);
  void stop();

 private:
  static constexpr DurationMs kLookAgain = 10 * kSecond;
  void work();

  RealReactor& reactor_;
  const DaemonOptions& options_;
  std::map<std::string, std::string>& problems_;
  std::shared_ptr<Dnsmasq> dnsmasq_;
  std::optional<BootNetwork> wanted_;
  bool working_ = false, again_ = false;
  Reactor::TimerId timer_ = 0;
};

// dnsmasq's files. Not in the state folder, which is root's alone: dnsmasq does not run as root. One per
// state folder, since a machine may have several controllers (labs). Gone when the machine restarts: the
// addresses of declared machines are fixed, and one for another machine is tried before it is given.
std::string dhcp_folder(const std::string& state);
// Returns the network that dnsmasq must serve; interface and user are not set.
BootNetwork boot_network(const Spec& spec, const std::string& address, const DaemonOptions& options,
                         bool unknown_machines);

}  // namespace muster

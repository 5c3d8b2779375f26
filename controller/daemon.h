// Daemon: the controller as one object. Owns the store, the executor, and all ports and servers.
//
// create() opens the state (one controller per state folder) and starts nothing. start() opens the Unix
// socket at once, and the TLS and boot ports and DHCP as soon as an address on the provisioning network is
// known (--listen, or a spec). A run that was active when the controller ended is continued. Thread: create
// and destroy it while the reactor is not running; everything else on the reactor's thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "controller/options/options.h"
#include "sys/reactor.h"

namespace muster {

class Authority;
struct Services;

class Daemon {
 public:
  // Code::conflict: another controller uses this state folder. Code::corrupt: not a muster database, or one
  // of a newer version.
  static Result<std::unique_ptr<Daemon>> create(RealReactor& reactor, DaemonOptions options);
  virtual ~Daemon() = default;
  virtual Status start() = 0;
  // Closes the ports. The reactor may be stopped afterwards.
  virtual void stop() = 0;
  virtual uint16_t tls_port() const = 0;  // 0: not open
  virtual uint16_t boot_port() const = 0;
  virtual Services& services() = 0;
};

}  // namespace muster

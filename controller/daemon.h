// Daemon: the controller as one object. Owns the store, the executor, and every port and server around them.
//
// create() opens the state (one controller per state folder) and starts nothing; start() opens the ports: the
// Unix socket at once, the TLS and boot ports and DHCP as soon as an address on the provisioning network is
// known (--listen, or a spec). A run that was active when the controller ended is continued. Thread: created
// and destroyed where the reactor is not running; everything else on the reactor's thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/reactor.h"
#include "base/result.h"
#include "controller/options.h"

namespace muster {

class Authority;
struct Services;

class Daemon {
 public:
  // `conflict`: another controller uses this state folder. `corrupt`: not muster's database, or a newer
  // version's.
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

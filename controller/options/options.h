// The command-line options of musterd. Thread safety: a plain value type, not changed after start.
#pragma once

#include <cstdint>
#include <string>

#include "base/ports.h"

namespace muster {

struct DaemonOptions {
  std::string state = "/var/lib/muster";            // muster.db, pki/, images/
  std::string socket = "/run/muster/musterd.sock";  // for operators on this machine
  std::string listen = {};   // on the provisioning network; empty: the spec's controller address
  std::string metrics = {};  // where /metrics is served to Prometheus over plain HTTP; empty: nowhere
  // In place of `metrics` where that is every network of this machine: the page is not served there. No
  // error, as earlier versions did serve it, and an upgrade must not stop the controller.
  std::string metrics_closed = {};
  std::string images = {};         // folder of image recipes
  std::string image_cache = {};    // built images shared with other controllers on this machine; empty: none
  std::string playbooks = {};      // folder of playbooks and acceptance profiles
  std::string agent_binary = {};   // muster-agent, for the RAM system
  std::string accept_binary = {};  // muster-accept, for images
  uint16_t tls_port = kTlsPort;
  uint16_t boot_port = kBootPort;
  uint16_t metrics_port = kMetricsPort;
  std::string kernel_options =
      {};  // kernel arguments of every system that this controller boots or installs, before the spec's own
  std::string sys = "/sys";  // sysfs of this machine; a different folder in tests
  bool dhcp = true;          // false: never start dnsmasq (tests, external DHCP)
  // True for a lab's controller, whose machines are virtual: accepts the spec's items in lab_only.h, which
  // are otherwise rejected. Set on the command line only: an environment variable would also affect a second
  // musterd that is started by hand.
  bool lab = false;
};

// Fills empty fields from the installed share folder, else from the source tree in which `program` was built;
// sets metrics_closed.
DaemonOptions with_defaults(DaemonOptions options, const std::string& program);

// What is wrong with the address of `--metrics`; "" if nothing is.
std::string wrong_metrics_address(const std::string& address);

}  // namespace muster

// musterd's command line. Thread: a value, never changed after start.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

constexpr uint16_t kTlsPort = 7443;
constexpr uint16_t kBootPort = 7480;

struct DaemonOptions {
  std::string state = "/var/lib/muster";            // muster.db, pki/, images/, run/
  std::string socket = "/run/muster/musterd.sock";  // operators on this machine
  std::string listen = {};        // address on the provisioning network; empty: the spec's controller address
  std::string images = {};        // image recipes
  std::string image_cache = {};   // built images shared with other controllers of this machine; empty: none
  std::string playbooks = {};     // playbooks and acceptance profiles
  std::string agent_binary = {};  // muster-agent, for the RAM system
  std::string accept_binary = {};  // muster-accept, for images
  uint16_t tls_port = kTlsPort;
  uint16_t boot_port = kBootPort;
  std::string kernel_options =
      {};  // kernel arguments of every system that this controller boots or installs, before the spec's own
  std::string sys = "/sys";  // the kernel's view of this machine; another folder in tests
  bool dhcp = true;          // false: never start dnsmasq (tests, external DHCP)
  // True for a lab's controller, whose machines are virtual: only then is what lab_only.h lists accepted.
  // Settable on the command line only: an environment variable would still be set when a second musterd is
  // started by hand.
  bool lab = false;
};

// Fills empty fields: the installed share folder, else the folder of the source tree `program` was built in.
DaemonOptions with_defaults(DaemonOptions options, const std::string& program);

}  // namespace muster

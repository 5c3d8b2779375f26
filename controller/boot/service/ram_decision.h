// How a machine boots its RAM system: which image's, and what it is given to join with. Thread: any; a plain
// function of its arguments.
#pragma once

#include <string>

#include "controller/boot/boot.h"
#include "controller/options/options.h"
#include "controller/spec/spec.h"

namespace muster {

struct RamSource {
  const DaemonOptions& options;
  const Spec& cluster;
  const NodeSpec* node;  // null: an undeclared machine
  std::string address;   // of the controller, on the provisioning network
  std::string ca_fingerprint;
};
// Without the machine's own network settings.
BootDecision ram_decision(const RamSource& from, const std::string& name, const std::string& token);

// Returns the image whose RAM system undeclared machines boot: that of the first node with one; "": none.
std::string discovery_image(const Spec& spec);

}  // namespace muster

// Reads the identity of the machine that musterd runs on, for controller/plan/own_machine.h.
#pragma once

#include <memory>
#include <string>

#include "base/machine_uuid.h"
#include "controller/plan/own_machine.h"
#include "sys/os.h"

namespace muster {

// `sys`: mount point of sysfs; `proc`: of procfs. What cannot be read is left empty. Ports without a device
// (bridges, taps, veth ends of containers) are left out: their MAC addresses are generated and may exist on
// other machines too, and so may those of USB ports and virtual functions (host/rails.h).
OwnMachine read_own_machine(const std::string& sys, const std::string& proc = "/proc");

// Adds the controller's own machine to the machines of all nodes; the result is cached while these are the
// same. Used for a power call to a node that was never seen.
class MachinesWithOwn {
 public:
  explicit MachinesWithOwn(std::string own_uuid) : own_uuid_(std::move(own_uuid)) {}
  std::shared_ptr<const Machines> of(const std::shared_ptr<const Machines>& known);

 private:
  const std::string own_uuid_;
  std::shared_ptr<const Machines> known_, with_own_;
};

}  // namespace muster

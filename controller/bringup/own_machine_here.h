// Reads the identity of the machine that musterd runs on, for controller/plan/own_machine.h.
#pragma once

#include <memory>
#include <string>

#include "base/machine_uuid.h"
#include "base/os.h"
#include "controller/plan/own_machine.h"

namespace muster {

// `sys` is the folder of sysfs, `proc` that of procfs. What cannot be read is left empty. Ports without a
// device of their own (bridges, taps, containers' ends) are left out: their addresses are made up and may be
// in use on a different machine, as may those of ports on USB and of virtual functions
// (base/port_identity.h).
OwnMachine read_own_machine(const std::string& sys, const std::string& proc = "/proc");

// The machines of all nodes, and the remark about the controller's own: made once for as long as they are the
// same. Used for a power call for a node that was never seen.
class MachinesWithOwn {
 public:
  explicit MachinesWithOwn(std::string own_uuid) : own_uuid_(std::move(own_uuid)) {}
  std::shared_ptr<const Machines> of(const std::shared_ptr<const Machines>& known);

 private:
  const std::string own_uuid_;
  std::shared_ptr<const Machines> known_, with_own_;
};

}  // namespace muster

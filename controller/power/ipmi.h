// The IPMI power driver: one BMC over RMCP+ (UDP), by running Debian's `ipmitool` as a process. Protocol
// only: retries are controller/power/wrap.h.
//
// Every order is raw bytes, because `chassis bootdev` ends with 0 even if the BMC refused, and counts when it
// was read back. The password is passed in the environment, never in arguments. A BMC is identified by its
// GUID, pinned on first use; one with a changed GUID, or of another node's machine, is never switched
// (Code::denied). After two failed logins none is tried for a while, since BMCs lock accounts; one means
// nothing, since BMCs mix up sessions (controller/power/ipmitool.h). What ipmitool prints comes from the BMC
// and may be hostile: its size is limited, and only hexadecimal bytes are parsed. Docs: docs/drivers.md#ipmi.
#pragma once

#include "base/os.h"
#include "controller/power/power.h"
#include "controller/power/waiter.h"

namespace muster {

std::unique_ptr<Power> make_ipmi(PowerTarget target, Waiter waiter, std::shared_ptr<Process> process);
PowerDriver ipmi_driver();

}  // namespace muster

// The IPMI power driver: one BMC over RMCP+ (UDP), by running Debian's `ipmitool` as a process. Protocol
// only: for retries see controller/power/wrap.h.
//
// Orders are raw bytes, since `chassis bootdev` exits with 0 even if the BMC refused, and are read back. The
// password is passed in the environment, never in arguments. A BMC is identified by its GUID, pinned on first
// use; if the GUID changed, or the BMC is another node's, no order is sent (Code::denied). After two
// failed logins no login is tried for a while, since BMCs lock accounts; a single failure is ignored, since
// BMCs mix up sessions (controller/power/ipmitool.h). ipmitool's output comes from the BMC and may be
// hostile: its size is limited, and only hexadecimal bytes are parsed. See docs/drivers.md#ipmi.
#pragma once

#include "controller/ports/power.h"
#include "controller/power/waiter.h"
#include "sys/os.h"

namespace muster {

std::unique_ptr<Power> make_ipmi(PowerTarget target, Waiter waiter, std::shared_ptr<Process> process);
PowerDriver ipmi_driver();

}  // namespace muster

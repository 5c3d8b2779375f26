// The IPMI power driver: one BMC over RMCP+ (UDP), spoken by Debian's `ipmitool` as a process. Protocol only:
// retries are controller/power/wrap.h.
//
// Every order is raw bytes, because `chassis bootdev` ends with 0 where the BMC refused, and is believed when
// it was read back. The password goes by the environment, never by arguments. A BMC is known by its GUID: on
// first use it is learned, a changed one, or one that is another node's machine, is never touched
// (Code::denied). Two failed logins are the last for a while, since BMCs lock accounts; one says nothing,
// since BMCs mix up sessions (controller/power/ipmitool.h). What ipmitool prints comes from the BMC and may
// be hostile: its size is limited, and only hexadecimal bytes are taken. Docs: docs/drivers.md#ipmi.
#pragma once

#include "base/os.h"
#include "controller/power/power.h"
#include "controller/power/waiter.h"

namespace muster {

std::unique_ptr<Power> make_ipmi(PowerTarget target, Waiter waiter, std::shared_ptr<Process> process);
PowerDriver ipmi_driver();

}  // namespace muster

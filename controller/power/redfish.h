// The Redfish power driver. Protocol only: retries are controller/power/wrap.h.
//
// Everything is found by following links from /redfish/v1/, nothing by built-in ids. Of several systems the
// one that can be reset counts (an HGX baseboard cannot); one that cannot be read while the host is off is
// skipped (docs/decisions/0013-power-drivers.md). A system whose UUID is not the expected one, or, if none is
// expected, is another node's, is never switched (Code::denied).
#pragma once

#include "controller/power/power.h"
#include "controller/power/waiter.h"

namespace muster {

std::unique_ptr<Power> make_redfish(PowerTarget target, Waiter waiter);
PowerDriver redfish_driver();

}  // namespace muster

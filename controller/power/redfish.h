// The Redfish power driver. Protocol only: for retries see controller/power/wrap.h.
//
// Resources are found by following links from /redfish/v1/, never by built-in ids. Of several systems the one
// that can be reset is used (an HGX baseboard cannot); one that cannot be read while the host is off is
// skipped (docs/decisions/0013-power-drivers.md). A system is never switched (Code::denied) if its UUID is
// not the expected one or, if none is expected, is that of a different node.
#pragma once

#include "controller/ports/power.h"
#include "controller/power/redfish_client.h"
#include "controller/power/waiter.h"

namespace muster {

std::unique_ptr<Power> make_redfish(PowerTarget target, Waiter waiter, HttpClients http = make_http_client);
PowerDriver redfish_driver();

}  // namespace muster

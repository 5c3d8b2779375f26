// Redfish: power and one-time network boot through a BMC, over HTTPS with a pinned certificate.
//
// Follows links, builds no URL from ids; takes the system that has a Reset action (HGX boards show a second without one).
// Basic authentication and `Connection: close` on every request: sessions are few on BMCs and leak. Written against the ten
// captures and the field reports in the project's fact sheets; which real BMCs were exercised is in docs/drivers.md.
// Thread: one worker at a time.
#pragma once

#include "controller/power/power.h"

namespace muster {

PowerDriver redfish_driver();

}  // namespace muster

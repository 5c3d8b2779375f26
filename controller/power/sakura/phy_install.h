// Reinstallation through the API of the driver `sakura-phy`: implements controller/ports/reinstall.h.
#pragma once

#include "controller/ports/power.h"
#include "controller/ports/reinstall.h"
#include "controller/power/sakura/phy_account.h"

namespace muster {

std::unique_ptr<Reinstall> make_phy_install(PowerTarget target, std::shared_ptr<PhyAccount> account);

}  // namespace muster

// Reinstallation through the API of the driver `sakura-phy`: implements controller/power/reinstall.h.
#pragma once

#include "controller/power/sakura/phy_account.h"
#include "controller/power/power.h"
#include "controller/power/reinstall.h"

namespace muster {

std::unique_ptr<Reinstall> make_phy_install(PowerTarget target, std::shared_ptr<PhyAccount> account);

}  // namespace muster

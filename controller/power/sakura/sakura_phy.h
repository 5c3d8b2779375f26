// The power driver `sakura-phy`: a rented machine behind the provider's API. Protocol only: for retries see
// controller/power/wrap.h, for the account's budget and list controller/power/sakura/phy_account.h.
//
// A server is named by its id or by a unique nickname. The id that was found first is pinned
// ("server:113100000001"): a nickname that leads to another server later is refused (Code::denied). The API
// returns nothing that identifies the machine itself. An order counts after the hardware's own power state
// was read back; a locked server is sent no orders. The driver cannot boot a machine from the network:
// boot_once_network is refused before anything is done (how such a node is reinstalled:
// docs/decisions/0035-providers-api.md). See docs/drivers.md#sakura-phy.
#pragma once

#include "controller/ports/power.h"
#include "controller/ports/reinstall.h"
#include "controller/power/sakura/phy_account.h"

namespace muster {

std::unique_ptr<Power> make_sakura_phy(PowerTarget target, Waiter waiter,
                                       std::shared_ptr<PhyAccount> account);
PowerDriver sakura_phy_driver();

// The target's entry in the list, checked to be the pinned server and not another node's. Sets the pin.
Result<PhyServer> phy_server_of(const PowerTarget& target, PhyAccount& account, const PhyQuery& request);

// Reinstallation through the API of the driver `sakura-phy`: implements controller/ports/reinstall.h.

std::unique_ptr<Reinstall> make_phy_install(PowerTarget target, std::shared_ptr<PhyAccount> account);

}  // namespace muster

// Connects a ProviderInstall to the daemon's power drivers, boot service, vault, and SSH; and gives drivers
// what the spec declares of a node.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/boot/service/boot_service.h"
#include "controller/current/current_spec.h"
#include "controller/plan/own_machine.h"
#include "controller/ports/store.h"
#include "controller/power/provider/provider_install.h"
#include "controller/power/service/power_service.h"
#include "controller/trust/vault.h"

namespace muster {

// All references must outlive what is made from them.
struct ProviderParts {
  RealReactor& reactor;
  PowerService& power;
  BootService& boot;
  Vault& vault;
  CurrentSpec& spec;
  std::string agent_binary;
  std::function<void(const std::string& node, const std::string& what)> note;
  std::function<std::string(const std::string& node)> known_boot;  // its agent's last boot id; "": none
};
// Makes the ProviderInstall, to which `power` forwards reinstall().
std::unique_ptr<ProviderInstall> install_by_provider(const ProviderParts& parts);

// Deletes installation records of nodes that are no longer in the spec, or no longer installed by a provider,
// so that a later node of the same name starts without a record.
void forget_installs(Vault& vault, Store& store, const Spec& spec);

// Fills in what the provider's driver needs besides its own server: the owners of the other servers, from the
// spec, and the identity of the controller host.
void restore_servers(const Spec& spec, const OwnMachine& own, PowerTarget& target);

// Returns what the spec declares of the node's power, with the login in its secret; the identity of its
// machine is not in it. invalid: the node has no power control, or the secret is no login; not_found: the
// secret is not set.
Result<PowerService::Where> declared_power(const Spec& spec, const NodeSpec& node, const OwnMachine& own,
                                           Vault& vault);

}  // namespace muster

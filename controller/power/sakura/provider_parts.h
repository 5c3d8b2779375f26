// What a ProviderInstall is made of in the daemon: the power drivers, the boot service, the vault, and SSH.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/boot/boot_service.h"
#include "controller/bringup/current_spec.h"
#include "controller/plan/own_machine.h"
#include "controller/power/power_service.h"
#include "controller/power/sakura/provider_install.h"
#include "controller/store/store.h"
#include "controller/trust/vault.h"

namespace muster {

// All outlive what is made of them.
struct ProviderParts {
  RealReactor& reactor;
  PowerService& power;
  BootService& boot;
  Vault& vault;
  CurrentSpec& spec;
  std::string agent_binary;
  std::function<void(const std::string& node, const std::string& what)> tell;
  std::function<std::string(const std::string& node)> known_boot;  // its agent's last boot id; "" none
};
// Made, and what `power` hands reinstall() to.
std::unique_ptr<ProviderInstall> install_by_provider(const ProviderParts& parts);

// Records of installations of nodes that the spec does not have any more, or not as nodes that a provider
// installs: a node that gets such a name later begins anew.
void forget_installs(Vault& vault, Store& store, const Spec& spec);

// What a driver of the provider's has to know beside its own server: whose the others are, as the spec says,
// and what the machine under our feet is known by.
void know_servers(const Spec& spec, const OwnMachine& own, PowerTarget& target);

}  // namespace muster

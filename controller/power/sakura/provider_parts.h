// The parts of a ProviderInstall in the daemon: the power drivers, the boot service, the vault, and SSH.
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
// Created; `power` forwards reinstall() to it.
std::unique_ptr<ProviderInstall> install_by_provider(const ProviderParts& parts);

// Records of installations of nodes that are no longer in the spec, or not as nodes that a provider installs:
// a node that gets such a name later starts without a record.
void forget_installs(Vault& vault, Store& store, const Spec& spec);

// What the provider's driver needs beside its own server: the owners of the others, from the spec, and the
// identity of the controller host.
void know_servers(const Spec& spec, const OwnMachine& own, PowerTarget& target);

}  // namespace muster

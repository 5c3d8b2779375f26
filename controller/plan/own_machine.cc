#include "controller/plan/own_machine.h"

#include <fmt/format.h>

#include "base/lower.h"
#include "base/machine_uuid.h"
#include "base/placeholders.h"

namespace muster {
namespace {

bool is_own_uuid(const OwnMachine& own, const std::string& uuid) {
  return !uuid.empty() && names_one_machine(own.uuid) && same_uuid(own.uuid, uuid);
}

// Only a unique address from the manufacturer identifies a machine; others may exist on several machines.
bool is_own_port(const OwnMachine& own, const NicFacts& nic) {
  return nic.address_kind.empty() && !is_usb_driver(nic.driver) && names_one_port(nic.mac) &&
         own.macs.count(lower(nic.mac)) > 0;
}

}  // namespace

std::string sign_of_own_machine(const OwnMachine& own, const NodeSpec& node, const std::string& bound_uuid,
                                const HardwareFacts* facts) {
  for (const std::string& at : {node.address, node.adopt.host})
    if (!at.empty() && own.addresses.count(at)) return fmt::format("its address {} is the controller's", at);
  // A declared MAC may be assigned by software, as in a lab, so its kind is not checked.
  if (!node.mac.empty() && own.macs.count(lower(node.mac)))
    return fmt::format("its MAC {} belongs to one of the controller's ports", node.mac);
  for (const std::string& uuid : {bound_uuid, facts ? facts->system.uuid : std::string()})
    if (is_own_uuid(own, uuid)) return fmt::format("its product UUID {} is the controller's", uuid);
  if (facts)
    for (const NicFacts& nic : facts->nics)
      if (is_own_port(own, nic))
        return fmt::format("its port {} with MAC {} is the controller's", nic.name, nic.mac);
  return "";
}

}  // namespace muster

// Selects the kernel modules of the RAM system and of the installed system's initrd. Pure functions, no I/O.
//
// Network: every Ethernet driver of the image's kernel, PHY drivers, and a few USB drivers, since a node
// whose port has no driver is unreachable. Storage: adapters of a machine's local drives. Adapters of shared
// storage (Fibre Channel, FCoE, iSCSI offload) are left out: a volume shared by many machines would appear
// among the disks of each of them while disks are selected and written.
#pragma once

#include <string>
#include <vector>

#include "controller/image/ram_modules.h"

namespace muster {

// Returns the modules that are loaded at start, in this order; the rest are loaded when a device needs them.
std::vector<std::string> modules_at_start();
// These return names in the form that closure() takes.
std::vector<std::string> storage_modules(const ModuleIndex& index);
std::vector<std::string> network_modules(const ModuleIndex& index);
std::vector<std::string> ram_system_modules(const ModuleIndex& index);  // all modules of the RAM system

}  // namespace muster

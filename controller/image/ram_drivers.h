// Which kernel modules the RAM system and the installed system's initrd have. Pure.
//
// Network: every Ethernet driver of the image's kernel and what drives the chips behind a port (PHYs), a few
// on USB, since a node whose port has no driver stays silent. Storage: adapters of a machine's own drives.
// Not those of shared storage (Fibre Channel, FCoE, iSCSI offload): a volume that many machines see would
// appear among the disks of each of them while disks are chosen and written.
#pragma once

#include <string>
#include <vector>

#include "controller/image/ram_modules.h"

namespace muster {

// Loaded at start, in this order; the rest is loaded when a device needs it.
std::vector<std::string> modules_at_start();
// Names as for closure().
std::vector<std::string> storage_modules(const ModuleIndex& index);
std::vector<std::string> network_modules(const ModuleIndex& index);
std::vector<std::string> ram_system_modules(const ModuleIndex& index);  // all of the RAM system's

}  // namespace muster

// Reads SMBIOS data that the kernel does not export as single files: the OEM strings. They show whether this
// machine is a lab's virtual machine with stand-ins for GPUs.
//
// Reads /sys/firmware/dmi/tables/DMI, which only root can read; the result is empty if the table cannot be
// read or is broken. Thread safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/standin.h"
#include "sys/os.h"

namespace muster {

// Returns the strings of all structures of type 11 (OEM strings), in order.
std::vector<std::string> oem_strings(const Files& files);

// Returns this machine's stand-ins for GPUs. Empty unless all of this holds, so that a real machine or a real
// GPU is never taken for a simulated one: the processor reports a hypervisor, the vendor is QEMU, the product
// name is the lab's, exactly one OEM string is the lab's, and there is no NVIDIA GPU on the PCI bus.
std::optional<StandinGpus> standin_gpus(const Files& files);

}  // namespace muster

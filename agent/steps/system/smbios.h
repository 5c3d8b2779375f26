// SMBIOS tables beyond the few fields that the kernel shows: the OEM strings, and from them whether this
// machine is a lab's guest with stand-ins for GPUs.
//
// Reads /sys/firmware/dmi/tables/DMI, which only root can read; a table that cannot be read or is broken has
// no strings. Thread: stateless, over Files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/os.h"
#include "base/standin.h"

namespace muster {

// The strings of all structures of type 11, in order.
std::vector<std::string> oem_strings(const Files& files);

// Stand-ins for GPUs of this machine. Empty unless all of this holds, so that no real machine is ever taken
// for a guest, nor a real GPU for a stand-in: the processor reports a hypervisor, the maker is QEMU, the
// product is the lab's, just one OEM string is the lab's, and no GPU of NVIDIA is on the PCI bus.
std::optional<StandinGpus> standin_gpus(const Files& files);

}  // namespace muster

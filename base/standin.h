// Stand-ins for GPUs: written by a lab into the SMBIOS of its machines, and read there by a guest.
//
// The lab puts one OEM string (SMBIOS type 11) on a machine's command line, "muster-lab-gpus/1 2 NVIDIA H100
// 80GB HBM3"; the agent (agent/steps/system/smbios.h), the stub kernel module and library (lab/stub-gpu/) use
// only it. No hardware is behind them, and no measurement on one counts. Inventory, the plan's note, names of
// steps for a node's GPUs, every check of them in the report, reasons of nodes, and the output of the stub
// programs are marked SIMULATED GPU; docs/lab.md lists what is not. Thread: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/json.h"

namespace muster {

inline constexpr const char* kSimulatedGpu = "SIMULATED GPU";
// The product name of the lab's machines in SMBIOS.
inline constexpr const char* kLabVendor = "QEMU";
inline constexpr const char* kLabProduct = "muster lab machine (SIMULATED)";
inline constexpr const char* kStandinPrefix = "muster-lab-gpus/1 ";
inline constexpr const char* kStandinModel = "NVIDIA H100 80GB HBM3";
inline constexpr int kMostStandinGpus = 16;  // PCI buses e0 to ef

struct StandinGpus {
  int count = 0;
  std::string model = kStandinModel;
};

// The error in a model's name for such a string; "" if valid. Commas are QEMU's own.
std::string wrong_standin_model(const std::string& model);
std::string standin_text(const StandinGpus& gpus);
// Empty unless the whole text is such a string.
std::optional<StandinGpus> standin_from_text(const std::string& text);

// "0000:e1:00.0": the address of stand-in number `index` (from 0). No device of a lab's machine is there.
std::string standin_pci(int index);
// As in an inventory. `machine`: the product UUID, so that no two machines have the same GPU.
std::vector<GpuFacts> standin_facts(const StandinGpus& gpus, const std::string& machine);

// How many of them are stand-ins.
int simulated_gpus(const HardwareFacts& facts);

// Whether a measuring step with these parameters puts a load on GPUs or their memory, which a stand-in cannot
// carry. Used by agent and controller: one skips the step, the other ignores a result of it. Reading the
// counters of a driver is not a load.
bool loads_gpus(const Json& params);

}  // namespace muster

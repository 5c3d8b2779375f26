// Stand-ins for GPUs: a lab writes them into the SMBIOS of its machines, and a guest reads them there.
//
// The lab passes one OEM string (SMBIOS type 11) to each machine, "muster-lab-gpus/1 2 NVIDIA H100 80GB
// HBM3"; the agent (agent/steps/system/smbios.h) and the stub kernel module and library (lab/stub-gpu/) use
// only that. There is no hardware, and measurements on stand-ins are void. The inventory, the plan's note,
// the names of GPU steps, all GPU checks in the report, the nodes' reasons and the output of the stub
// programs are marked SIMULATED GPU; docs/lab.md lists what is not. Thread safety: stateless functions.
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

// Returns the error in a model name for this string; "" if valid. No commas: QEMU interprets them.
std::string wrong_standin_model(const std::string& model);
std::string standin_text(const StandinGpus& gpus);
// Empty unless the whole text is such a string.
std::optional<StandinGpus> standin_from_text(const std::string& text);

// Returns the PCI address of stand-in `index` (from 0), "0000:e1:00.0"; a lab machine has no device there.
std::string standin_pci(int index);
// Returns the stand-ins as inventory entries. `machine`: product UUID, which makes the GPUs' UUIDs unique.
std::vector<GpuFacts> standin_facts(const StandinGpus& gpus, const std::string& machine);

int simulated_gpus(const HardwareFacts& facts);

// True if a measuring step with these parameters puts a load on GPUs or their memory, which is not possible
// on a stand-in: the agent skips such a step, and the controller ignores a result of it. Reading a driver's
// counters is not a load.
bool loads_gpus(const Json& params);

}  // namespace muster

// Stand-ins for GPUs: what a lab writes into the SMBIOS of its machines, and what a guest reads there.
//
// The lab puts one OEM string (SMBIOS type 11) on a machine's command line, "muster-lab-gpus/1 2 NVIDIA
// H100 80GB HBM3"; the agent (agent/steps/system/smbios.h), the made-up kernel module and library
// (lab/stub-gpu/) go by it and by nothing else. No hardware is behind them, and nothing that is measured
// on one counts. Inventory, the plan's note, names of steps for a node's GPUs, every check of them in the
// report, reasons of nodes, and what the stub programs print say SIMULATED GPU; docs/lab.md lists what
// does not. Thread: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/json.h"

namespace muster {

inline constexpr const char* kSimulatedGpu = "SIMULATED GPU";
// What the lab's machines call themselves in SMBIOS.
inline constexpr const char* kLabVendor = "QEMU";
inline constexpr const char* kLabProduct = "muster lab machine (SIMULATED)";
inline constexpr const char* kStandinPrefix = "muster-lab-gpus/1 ";
inline constexpr const char* kStandinModel = "NVIDIA H100 80GB HBM3";
inline constexpr int kMostStandinGpus = 16;  // PCI buses e0 to ef

struct StandinGpus {
  int count = 0;
  std::string model = kStandinModel;
};

// What is wrong with a model's name in such a string; "" when nothing is. Commas are QEMU's own.
std::string wrong_standin_model(const std::string& model);
std::string standin_text(const StandinGpus& gpus);
// Nothing unless the text is such a string to the last character.
std::optional<StandinGpus> standin_from_text(const std::string& text);

// "0000:e1:00.0": where stand-in number `index` (from 0) pretends to be. No device of a lab's machine is
// there.
std::string standin_pci(int index);
// As an inventory has them. `machine`: the product UUID, so that no two machines have the same GPU.
std::vector<GpuFacts> standin_facts(const StandinGpus& gpus, const std::string& machine);

// How many of them are stand-ins.
int simulated_gpus(const HardwareFacts& facts);

// Whether a measuring step with these parameters puts a load on GPUs or their memory, which a stand-in has
// nothing for. Agent and controller ask the same question: one leaves the step out, the other does not
// believe what is told of it. Reading the counters of a driver is no load.
bool loads_gpus(const Json& params);

}  // namespace muster

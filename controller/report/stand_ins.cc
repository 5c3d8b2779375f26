#include "controller/report/stand_ins.h"

#include <fmt/format.h>

#include "base/standin.h"

namespace muster {
namespace {

bool says_it(const std::string& text) { return text.find(kSimulatedGpu) != std::string::npos; }

// True if the check is about GPUs; hardware/pcie is about the links of the GPUs only.
bool all_about_gpus(const Check& check) {
  return says_it(check.title) || check.name.starts_with("gpu ") || check.name.starts_with("hardware/gpu") ||
         check.name == "hardware/pcie";
}

bool metric_of_gpus(const Check& check) {
  const std::string metric = check.name.substr(check.name.rfind('/') + 1);
  return metric.starts_with("gpu") || metric.starts_with("nvlink");
}

void say_it(std::string& text) {
  if (!text.empty() && !says_it(text)) text += fmt::format(" ({})", kSimulatedGpu);
}

}  // namespace

void say_simulated(const HardwareFacts& facts, std::vector<Check>& checks) {
  if (simulated_gpus(facts) == 0) return;
  for (auto& check : checks) {
    const bool all = all_about_gpus(check);
    if (!all && !metric_of_gpus(check)) continue;
    if (all) say_it(check.title);  // else the title must be the same on all nodes
    say_it(check.measured_text);
    say_it(check.reason);
    if (check.measured_text.empty() && check.reason.empty()) check.measured_text = kSimulatedGpu;
  }
}

}  // namespace muster

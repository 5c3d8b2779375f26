#include "controller/plan/gpus_for_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "controller/spec/gpu_software.h"
#include "controller/spec/hardware.h"

namespace muster {
namespace {

bool plays_a_driver(const Spec& spec, const NodeSpec& node) {
  const auto role = spec.roles.find(node.role);
  return role != spec.roles.end() &&
         std::any_of(role->second.begin(), role->second.end(), installs_gpu_driver);
}

}  // namespace

int gpus_for_jobs(const Spec& spec, const NodeSpec& node, const HardwareFacts* facts, bool driver_in_image) {
  const int declared = node.hardware.gpus.value_or(0);
  if (!facts) return declared;
  if (declared > 0 || plays_a_driver(spec, node) ||
      std::any_of(facts->gpus.begin(), facts->gpus.end(), is_named))
    return static_cast<int>(facts->gpus.size());
  return driver_in_image ? static_cast<int>(compute_gpus(*facts)) : 0;
}

std::string unused_gpu_note(const Spec& spec, const std::map<std::string, const HardwareFacts*>& machines,
                            const std::set<std::string>& with_driver) {
  std::vector<std::string> those;
  for (const auto& node : spec.nodes) {
    const auto seen = machines.find(node.name);
    if (seen == machines.end() || !spec.plays(node, "scheduler")) continue;
    // With a driver in the image, a card is worth a word that may be for a display only: workstation cards
    // for computing are of that PCI class too.
    const bool driver = with_driver.count(node.name) > 0;
    const size_t found = driver ? seen->second->gpus.size() : compute_gpus(*seen->second);
    if (found > 0 && gpus_for_jobs(spec, node, seen->second, driver) == 0)
      those.push_back(fmt::format("{} ({})", node.name, found));
  }
  if (those.empty()) return "";
  return fmt::format(
      "Slurm gets none of the GPUs of {}: no playbook {}, no NVIDIA driver among the packages of the image "
      "(or only cards that may be for a display), and none was loaded when the inventory was taken. If "
      "something else installs the driver, declare `hardware: {{ gpus: N }}`, or run `muster up` again once "
      "it is there",
      fmt::join(those, ", "), gpu_driver_playbooks());
}

}  // namespace muster

#include "controller/report/vanished.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/report/measured.h"

namespace muster {
namespace {

struct Known {
  std::vector<std::string> names = {};  // by one of which the measurement calls it; the first is shown
  std::string model = {};
  std::string part = {};  // for people
};

std::vector<Known> drives_of(const HardwareFacts& facts) {
  std::vector<Known> out;
  for (const auto& disk : facts.disks)
    if (!disk.serial.empty() &&
        (disk.transport == "nvme" || disk.transport == "sata" || disk.transport == "sas"))
      out.push_back({{disk.serial, disk.name},  // without a serial number in sysfs it goes by its kernel name
                     disk.model,
                     fmt::format("drive {} ({})", disk.serial, disk.model)});
  return out;
}

std::vector<Known> links_of(const HardwareFacts& facts) {
  std::vector<Known> out;
  for (const auto& gpu : facts.gpus)
    if (!gpu.pci.empty() && !gpu.bus_speed.empty() && !gpu.simulated)
      out.push_back({{gpu.pci}, gpu.model, "GPU " + gpu.pci});
  for (const auto& disk : facts.disks)
    if (!disk.pcie_address.empty() && !disk.bus_speed.empty())
      out.push_back({{disk.pcie_address}, disk.model, fmt::format("drive {} ({})", disk.serial, disk.model)});
  return out;
}

bool is_seen(const Known& known, const std::set<std::string>& subjects) {
  return std::any_of(known.names.begin(), known.names.end(),
                     [&](const std::string& name) { return subjects.count(name) > 0; });
}

// `unmeasured`: subjects that were there.
void add_to(MeasuredStep& step, const std::vector<Known>& inventory, const Json& unmeasured = Json::array()) {
  std::set<std::string> subjects, models;
  for (const auto& part : field(step.result, "parts")) subjects.insert(text_of(field(part, "subject")));
  for (const auto& subject : unmeasured) subjects.insert(text_of(subject));
  for (const auto& known : inventory)
    if (is_seen(known, subjects)) models.insert(known.model);
  for (const auto& known : inventory) {
    if (is_seen(known, subjects) || !models.count(known.model)) continue;
    step.result["parts"].push_back(
        {{"subject", known.names.front()},
         {"like", ""},
         {"result",
          {{"check", text_of(field(step.result, "check"))},
           {"outcome", "failed"},
           {"error", fmt::format("{} is in the inventory, and the measurement did not find it", known.part)},
           {"blame", Json::array({known.part})}}}});
  }
}

}  // namespace

void add_vanished(std::vector<MeasuredStep>& steps,
                  const std::map<std::string, const HardwareFacts*>& facts) {
  for (auto& step : steps) {
    const auto known = facts.find(step.node);
    if (known == facts.end() || !known->second || !field(step.result, "parts").is_array()) continue;
    const std::string check = text_of(field(step.result, "check"));
    if (check == "drives") add_to(step, drives_of(*known->second));
    // Older kernels do not say which devices were there without a link to measure.
    const Json& without = field(field(step.result, "detail"), "without_link");
    if (check == "pcie" && without.is_array()) add_to(step, links_of(*known->second), without);
  }
}

}  // namespace muster

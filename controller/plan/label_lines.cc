#include "controller/plan/label_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/engines/engine.h"
#include "controller/plan/disk_selection.h"
#include "controller/spec/hardware.h"

namespace muster {
namespace {

// True if the line mounts this section by the label that muster gives it on a node that holds its data.
bool is_of(const StorageSpec& section, const NodeSpec& node, const HardwareFacts& facts,
           const std::string& line) {
  const auto group = node.disks.find(section.disks);
  if (!holds_data(section, node) || group == node.disks.end()) return false;
  const StorageEngine& engine = engine_of(section);
  if (!engine.by_disk)
    return line == "LABEL=" + section.name + " " + section.mount ||
           line == fmt::format("LABEL={0} /srv/{1}/{0}", section.name, engine.name);
  return engine.disk_label && std::any_of(facts.disks.begin(), facts.disks.end(), [&](const DiskFacts& disk) {
           return disk_matches(group->second.match, disk) &&
                  line.starts_with("LABEL=" + engine.disk_label(disk) + " ");
         });
}

}  // namespace

LabelLines label_lines(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts) {
  LabelLines out;
  for (const auto& line : facts.by_label) {
    const bool system = line == "PARTLABEL=muster-esp /boot/efi" ||
                        (line.starts_with("root=") && line.find("LABEL=muster-root") != std::string::npos);
    if (system && !node.adopt.declared()) out.of_system.push_back(line);
    const bool storage =
        std::any_of(spec.storage.begin(), spec.storage.end(),
                    [&](const StorageSpec& section) { return is_of(section, node, facts, line); });
    if (storage) out.of_storage.push_back(line);
  }
  return out;
}

}  // namespace muster

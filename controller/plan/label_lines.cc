#include "controller/plan/label_lines.h"

#include <algorithm>

#include "controller/engines/engine.h"

namespace muster {
namespace {

constexpr const char* kMooseFs = "/srv/mfs/";

// Where the section's file systems are mounted on a node that holds its data.
bool is_mount_of(const StorageSpec& section, const NodeSpec& node, const std::string& target) {
  if (!holds_data(section, node)) return false;
  return engine_of(section).by_disk ? target.rfind(kMooseFs, 0) == 0
                                    : target == section.mount || target == "/srv/beegfs/" + section.name;
}

}  // namespace

LabelLines label_lines(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts) {
  LabelLines out;
  for (const auto& line : facts.by_label) {
    const std::string target = line.substr(line.rfind(' ') + 1);
    const bool system = line == "PARTLABEL=muster-esp /boot/efi" ||
                        (line.rfind("root=", 0) == 0 && line.find("LABEL=muster-root") != std::string::npos);
    if (system && !node.adopt.declared()) out.of_system.push_back(line);
    const bool storage =
        std::any_of(spec.storage.begin(), spec.storage.end(),
                    [&](const StorageSpec& section) { return is_mount_of(section, node, target); });
    if (storage) out.of_storage.push_back(line);
  }
  return out;
}

}  // namespace muster

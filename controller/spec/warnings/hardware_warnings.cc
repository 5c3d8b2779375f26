// Hardware as declared: sizes without a unit, requirements that require nothing, GPUs that get no driver,
// rails that do not fit the GPUs.
#include <fmt/format.h>

#include <algorithm>

#include "controller/spec/gpu_software.h"
#include "controller/spec/schema.h"
#include "controller/spec/warnings/observer.h"

namespace muster::warnings {
namespace {

// No server has less memory and no drive is smaller.
constexpr int64_t kLeastBytes = 1'000'000'000;

bool has_unit(const YamlNode& size) {
  return size.text.find_first_not_of("0123456789.>= ") != std::string::npos;
}

void check_size(Observer& o, const YamlNode& at, const std::string& path, int64_t bytes) {
  if (bytes < kLeastBytes && !has_unit(at))
    o.warn(finding::kSizeWithoutUnit, at, path, fmt::format("'{}' means {} bytes", at.text, bytes));
}

void sizes(Observer& o, const NodeGroup& group) {
  if (const YamlNode* memory = yaml_child(yaml_child(&group.entry, "hardware"), "memory"))
    check_size(o, *memory, group.path + ".hardware.memory", group.first().hardware.memory_bytes_min);
  const YamlNode* disks = yaml_child(&group.entry, "disks");
  for (const auto& [name, disk_group] : group.first().disks)
    if (const YamlNode* size = yaml_child(yaml_child(yaml_child(disks, name.c_str()), "match"), "size"))
      check_size(o, *size, fmt::format("{}.disks.{}.match.size", group.path, name),
                 disk_group.match.size_bytes.value_or(kLeastBytes));
}

// Virtual machines have so little that the least of servers is a requirement.
void guards(Observer& o, const NodeGroup& group) {
  const YamlNode* hardware = yaml_child(&group.entry, "hardware");
  const std::string path = group.path + ".hardware.";
  const YamlNode* memory = yaml_child(hardware, "memory");
  if (memory && has_unit(*memory) && !o.spec.lab && group.first().hardware.memory_bytes_min < kLeastBytes)
    o.warn(finding::kGuardWithoutEffect, *memory, path + "memory",
           fmt::format("every machine has '{}'", memory->text));
  for (const char* key : {"gpu_model", "cpu_model"})
    if (const YamlNode* model = yaml_child(hardware, key))
      if (model->text.find_first_not_of("*?") == std::string::npos)
        o.warn(finding::kGuardWithoutEffect, *model, path + key,
               fmt::format("'{}' is every model", model->text));
  const YamlNode* ports = yaml_child(yaml_child(hardware, "nics"), "any");
  if (ports && yaml_integer(yaml_child(hardware, "nics"), "any", 1) == 0)
    o.warn(finding::kGuardWithoutEffect, *ports, path + "nics.any", "every machine has 0 network ports");
}

void gpu_driver(Observer& o, const NodeGroup& group) {
  const NodeSpec& node = group.first();
  if (node.image.empty() || node.hardware.gpus.value_or(0) == 0) return;
  const std::vector<std::string> playbooks = o.playbooks_of(node);
  if (std::any_of(playbooks.begin(), playbooks.end(), [&](const std::string& playbook) {
        return installs_gpu_driver(playbook) || o.is_foreign(playbook);
      }))
    return;
  o.warn(
      finding::kGpusWithoutDriver, *yaml_child(yaml_child(&group.entry, "hardware"), "gpus"),
      group.path + ".hardware.gpus",
      fmt::format("neither image '{}' nor role '{}' has {}", node.image, node.role, gpu_driver_playbooks()));
}

// A GPU has a rail of its own, or several share one, or one has several; anything else is a slip.
void rails(Observer& o, const NodeGroup& group) {
  const NodeSpec& node = group.first();
  const size_t gpus = static_cast<size_t>(node.hardware.gpus.value_or(0)), count = node.rails.size();
  if (gpus == 0 || count == 0 || gpus % count == 0 || count % gpus == 0) return;
  const std::string message = fmt::format("{} rails and {} GPUs in {}", count, gpus, node.name);
  const auto warn_at = [&](const YamlNode* owner, const std::string& path) {
    const YamlNode* section = yaml_child(owner, "rails");
    if (!section) return false;
    const YamlNode* at = yaml_child(section, "count");
    o.warn(finding::kRailsUnlikeGpus, at ? *at : *section, path + (at ? ".rails.count" : ".rails"), message);
    return true;
  };
  const YamlNode* role = yaml_child(o.section("roles"), node.role.c_str());
  if (!warn_at(&group.entry, group.path) && !warn_at(role, "roles." + node.role))
    (void)warn_at(o.section("network"), "network");
}

}  // namespace

void hardware_warnings(Observer& o) {
  for (const NodeGroup& group : o.groups) {
    sizes(o, group);
    guards(o, group);
    gpu_driver(o, group);
    rails(o, group);
  }
  for (const SpecError& number : padded_numbers(o.root, Json::parse(embedded::spec_schema))) {
    YamlNode at;
    at.line = number.line;
    at.column = number.column;
    o.warn(finding::kLeadingZero, at, number.path,
           fmt::format("'{}' is the number {}", number.message,
                       number.message.substr(
                           std::min(number.message.find_first_not_of('0'), number.message.size() - 1))));
  }
}

}  // namespace muster::warnings

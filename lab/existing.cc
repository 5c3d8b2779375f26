#include "lab/existing.h"

#include <algorithm>

#include "sys/os.h"

namespace muster::lab {
namespace {

// Null if the file is missing or damaged.
Json read_json(const std::string& path) {
  const auto text = Files("/").read(path);
  if (!text) return {};
  auto json = parse_json(*text);
  return json ? *json : Json();
}

bool all_runs(const Json& status, const Json& summary) {
  if (!status.is_object() || !summary.is_object()) return false;
  const auto up = [&](const char* part) { return status.value(part, false); };
  const auto started = [&](const char* part) { return summary.contains(part) && !summary[part].is_null(); };
  return up("network") && up("bmcs") && (!started("socket") || up("controller")) &&
         (!started("apt_proxy") || up("apt_proxy"));
}

// lab.json without the machines that were added to the rack.
Json declared(Json machines) {
  Json nodes = Json::array();
  for (auto& node : machines["nodes"])
    if (node.value("in_spec", true)) nodes.push_back(std::move(node));
  machines["nodes"] = std::move(nodes);
  return machines;
}

bool has_node(const Json& machines, const std::string& name) {
  return std::any_of(machines["nodes"].begin(), machines["nodes"].end(),
                     [&](const Json& node) { return node.value("name", "") == name; });
}

bool options_match(const Found& found, const UpOptions& options) {
  const bool controller = !found.summary["socket"].is_null();
  return options.controller.value_or(controller) == controller &&
         (options.accel.empty() || options.accel == found.summary.value("accel", "")) &&
         std::all_of(options.add.begin(), options.add.end(),
                     [&](const std::string& name) { return has_node(found.machines, name); });
}

}  // namespace

Existing judge(const Found& found, const LabSpec& wanted, const UpOptions& options) {
  if (found.status.is_object() && found.status.value("serves", false) && !found.status.value("bmcs", false))
    return Existing::silent;
  if (!found.machines.is_object() || !all_runs(found.status, found.summary)) return Existing::partial;
  if (declared(found.machines) != declared(to_json(wanted))) return Existing::other;
  return options_match(found, options) ? Existing::same : Existing::other;
}

Existing existing_lab(const LabDir& dir, const LabSpec& wanted, const UpOptions& options) {
  if (!Files("/").exists(dir.space())) return Existing::none;
  Found found;
  if (auto now = status(dir)) found.status = std::move(*now);
  found.machines = read_json(dir.spec());
  found.summary = read_json(dir.summary());
  return judge(found, wanted, options);
}

}  // namespace muster::lab

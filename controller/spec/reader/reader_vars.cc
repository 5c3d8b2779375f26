// Variables: those that muster itself reads are checked here; playbooks define what the others mean.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/kernel_line.h"
#include "controller/spec/gpu_software.h"
#include "controller/spec/own_variables.h"
#include "controller/spec/reader/reader.h"

namespace muster {
namespace {

// What the variable is for comes from elsewhere where a role or an image has this playbook as well.
struct SecondSource {
  const char *variable, *playbook;
};
constexpr SecondSource kSecondSources[] = {{"apptainer_url", "apptainer"}};

}  // namespace

std::map<std::string, std::string> SpecReader::read_vars(const YamlNode* map, const std::string& path) {
  std::map<std::string, std::string> out;
  if (!map) return out;
  for (const YamlEntry& entry : map->entries) {
    if (!entry.value.is_text()) continue;
    const std::string& value = out[entry.key] = entry.value.text;
    std::string wrong;
    if (entry.key == own_variable::kKernelOptions) wrong = wrong_kernel_options(value);
    if (entry.key == own_variable::kConsole) wrong = wrong_console(value);
    if (!wrong.empty() && value.find('\n') != std::string::npos)
      wrong += "; in YAML, `>-` joins several lines into one";
    if (!wrong.empty()) error(entry.value, path + "." + entry.key, wrong);
  }
  if (const WrongVariable wrong = complete_driver_variables(out, spec_.vars); !wrong.name.empty()) {
    const YamlNode& at = *map->find(wrong.name);
    of_driver_.push_back({at.line, at.column, path + "." + wrong.name, wrong.reason});
  }
  return out;
}

VarGroups SpecReader::optional_vars_in_use() const {
  std::set<std::string> used;
  for (const auto& [role, playbooks] : spec_.roles) used.insert(playbooks.begin(), playbooks.end());
  for (const auto& [name, image] : spec_.images) used.insert(image.bake.begin(), image.bake.end());
  VarGroups out;
  for (const auto& [playbook, groups] : optional_vars_)
    if (used.count(playbook)) out.insert(out.end(), groups.begin(), groups.end());
  return out;
}

std::string SpecReader::with_both(const std::string& playbook, const std::string& variable) const {
  const auto reads = [&](const std::string& name) {
    const auto found = optional_vars_.find(name);
    return found != optional_vars_.end() && is_optional(found->second, variable);
  };
  const auto has_both = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), playbook) != list.end() &&
           std::any_of(list.begin(), list.end(), reads);
  };
  for (const auto& [name, playbooks] : spec_.roles)
    if (has_both(playbooks)) return fmt::format("role '{}'", name);
  for (const auto& [name, image] : spec_.images)
    if (has_both(image.bake)) return fmt::format("image '{}'", name);
  return "";
}

void SpecReader::check_second_sources() {
  for (const auto& [variable, playbook] : kSecondSources) {
    const YamlNode* at = child(child(&root_, "vars"), variable);
    const std::string where = at && !at->text.empty() ? with_both(playbook, variable) : "";
    if (!where.empty())
      error_once(*at, std::string("vars.") + variable,
                 fmt::format("{} has the playbook '{}', which installs the same: leave out one of them",
                             where, playbook));
  }
}

// The network behind the bridge is on every node, which then reaches no other one with its addresses.
void SpecReader::check_bridge(const YamlNode* vars, const std::string& path) {
  const YamlNode* at = child(vars, "docker_bridge");
  const auto network = at ? bridge_network(at->text) : std::nullopt;
  if (!network) return;  // reported elsewhere
  if (const std::string other = overlapped(*network, rail_networks_.size()); !other.empty())
    error_once(
        *at, path + ".docker_bridge",
        fmt::format("{} overlaps {}: a bridge needs a network of its own", format_cidr(*network), other));
}

void SpecReader::check_optional_vars() {
  const VarGroups groups = optional_vars_in_use();
  const auto in_own_playbook = [&](const std::string& name) {
    return std::any_of(spec_.own_playbooks.begin(), spec_.own_playbooks.end(), [&](const OwnPlaybook& own) {
      return own.text.find("vars." + name) != std::string::npos;
    });
  };
  const auto check = [&](const YamlNode* map, const std::string& path,
                         const std::map<std::string, std::string>& vars) {
    std::vector<std::string> known;
    for (const auto& [name, value] : vars)
      if (in_own_playbook(name)) known.push_back(name);
    for (const WrongVariable& wrong : wrong_variables(vars, groups, known))
      if (const YamlNode* at = child(map, wrong.name.c_str()))
        error_once(*at, path + "." + wrong.name, wrong.reason);
    if (is_optional(groups, "docker_bridge")) check_bridge(map, path);
  };
  check(child(&root_, "vars"), "vars", spec_.vars);
  for (size_t i = 0; i < spec_.nodes.size(); ++i) {
    const NodeSpec& node = spec_.nodes[i];
    if (node.vars.empty()) continue;
    auto vars = node.vars;
    vars.insert(spec_.vars.begin(), spec_.vars.end());
    check(child(places_[i].entry, "vars"), places_[i].path + ".vars", vars);
  }
  check_second_sources();
}

}  // namespace muster

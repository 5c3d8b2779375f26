// Variables of the spec: those that nothing reads, which are misspelt or left over, and those that a playbook
// needs, without which the plan or the image's build is refused.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/scan.h"
#include "controller/spec/own_variables.h"
#include "controller/spec/reader/own_playbooks.h"
#include "controller/spec/warnings/observer.h"

namespace muster::warnings {
namespace {

// The names behind "vars." in a playbook's text.
std::set<std::string> read_in(const std::string& text) {
  constexpr std::string_view kBefore = "vars.";
  std::set<std::string> out;
  for (size_t at = text.find(kBefore); at != std::string::npos; at = text.find(kBefore, at + 1)) {
    size_t end = at + kBefore.size();
    while (end < text.size() && (is_alphanumeric(text[end]) || text[end] == '_')) ++end;
    out.insert(text.substr(at + kBefore.size(), end - at - kBefore.size()));
  }
  return out;
}

std::set<std::string> playbooks_in_use(const Spec& spec) {
  std::set<std::string> out;
  for (const auto& [name, playbooks] : spec.roles) out.insert(playbooks.begin(), playbooks.end());
  for (const auto& [name, image] : spec.images) out.insert(image.bake.begin(), image.bake.end());
  return out;
}

// What a shipped playbook reads: variables that must be set, and optional ones.
struct Reads {
  std::set<std::string> needed, all;
};
Reads reads_of(const Observer& o, const std::string& playbook) {
  Reads out;
  const auto read = o.shipped.variables.find(playbook);
  if (read != o.shipped.variables.end()) out.all = read->second;
  out.needed = out.all;
  if (const auto optional = o.shipped.optional_vars.find(playbook); optional != o.shipped.optional_vars.end())
    for (const auto& group : optional->second)
      for (const std::string& name : group) {
        out.needed.erase(name);
        out.all.insert(name);
      }
  if (out.all.count("nvidia_branch")) out.all.insert("nvidia_driver");  // from which it follows
  return out;
}

// nullopt: a playbook may read any variable.
std::optional<std::set<std::string>> readable(const Observer& o) {
  std::set<std::string> out, used = playbooks_in_use(o.spec);
  for (const OwnPlaybook& own : o.spec.own_playbooks) {
    out.merge(read_in(own.text));
    out.merge(reads_of(o, playbook_of_file(own.file)).all);
    used.erase(playbook_of_file(own.file));
  }
  for (const std::string& playbook : used) {
    if (o.is_foreign(playbook)) return std::nullopt;
    out.merge(reads_of(o, playbook).all);
  }
  for (const auto& [name, playbook] : kOwnVariables)
    if (std::string(playbook).empty() || used.count(playbook)) out.insert(name);
  return out;
}

void unread(Observer& o, const YamlNode* vars, const std::string& path, const std::set<std::string>& known) {
  if (!vars || !vars->is_map()) return;
  std::vector<std::string> others;
  for (const std::string& name : known)
    if (!vars->find(name)) others.push_back(name);
  for (const YamlEntry& entry : vars->entries) {
    if (known.count(entry.key)) continue;
    const std::string near = nearest_spelling(entry.key, others);
    o.warn(finding::kVariableUnread, entry, path + "." + entry.key,
           "no playbook of this spec reads this variable" +
               (near.empty() ? "" : fmt::format(", did you mean '{}'?", near)));
  }
}

// The needed variables of a playbook that a node has not; `node` null: that the cluster has not.
std::vector<std::string> unset(const Observer& o, const std::string& playbook, const NodeSpec* node) {
  std::vector<std::string> out;
  if (o.is_foreign(playbook)) return out;
  for (const std::string& name : reads_of(o, playbook).needed)
    if (!o.spec.vars.count(name) && !(node && node->vars.count(name))) out.push_back(name);
  return out;
}

void missing(Observer& o, const YamlNode* list, const std::string& path,
             const std::vector<const NodeSpec*>& nodes) {
  for (size_t i = 0; list && i < list->items.size(); ++i)
    for (const NodeSpec* node : nodes) {
      const auto names = unset(o, list->items[i].text, node);
      if (names.empty()) continue;
      o.warn(finding::kVariableMissing, list->items[i], fmt::format("{}[{}]", path, i),
             fmt::format("'{}' needs {}", list->items[i].text, fmt::join(names, ", ")));
      break;
    }
}

}  // namespace

void variable_warnings(Observer& o) {
  if (const auto known = readable(o)) {
    unread(o, o.section("vars"), "vars", *known);
    for (const NodeGroup& group : o.groups)
      unread(o, yaml_child(&group.entry, "vars"), group.path + ".vars", *known);
  }
  if (const YamlNode* roles = o.section("roles"))
    for (const YamlEntry& role : roles->entries) {
      std::vector<const NodeSpec*> nodes;
      for (const NodeSpec& node : o.spec.nodes)
        if (node.role == role.key) nodes.push_back(&node);
      missing(o, yaml_child(&role.value, "playbooks"), fmt::format("roles.{}.playbooks", role.key), nodes);
    }
  // An image is one for all nodes: only the cluster's variables are in it.
  if (const YamlNode* images = o.section("images"))
    for (const YamlEntry& image : images->entries)
      missing(o, yaml_child(&image.value, "bake"), fmt::format("images.{}.bake", image.key), {nullptr});
}

}  // namespace muster::warnings

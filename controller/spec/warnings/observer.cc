#include "controller/spec/warnings/observer.h"

#include <fmt/format.h>

#include <utility>

#include "controller/spec/reader/own_playbooks.h"

namespace muster::warnings {

Observer::Observer(const YamlNode& file, const Spec& read, const SpecNames& known)
    : root(file), spec(read), names(known), shipped(shipped_names()) {
  known_.insert(shipped.playbooks.begin(), shipped.playbooks.end());
  // One of the spec's own may change steps of a shipped one.
  for (const OwnPlaybook& own : spec.own_playbooks) known_.erase(playbook_of_file(own.file));
  const YamlNode* nodes = section("nodes");
  for (size_t i = 0; nodes && i < nodes->items.size(); ++i) {
    const YamlNode& entry = nodes->items[i];
    NodeGroup group{entry, fmt::format("nodes[{}]", i), {}};
    for (const std::string& name : expand_range(yaml_text(&entry, "name")).value_or({}))
      if (const NodeSpec* node = spec.node(name)) group.nodes.push_back(node);
    if (!group.nodes.empty()) groups.push_back(std::move(group));
  }
}

std::vector<std::string> Observer::playbooks_of(const NodeSpec& node) const {
  std::vector<std::string> out;
  if (const auto image = spec.images.find(node.image); image != spec.images.end()) out = image->second.bake;
  if (const auto role = spec.roles.find(node.role); role != spec.roles.end())
    out.insert(out.end(), role->second.begin(), role->second.end());
  return out;
}

void Observer::add(std::string_view code, int line, int column, std::string path, std::string message) {
  if (!seen_.emplace(code, line, column).second) return;
  SpecError warning{line, column, std::move(path), std::move(message)};
  warning.code = code;
  found.push_back(std::move(warning));
}

}  // namespace muster::warnings

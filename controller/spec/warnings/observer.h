// What all warnings are made from: the spec as read, its file with places, and the list that they are added
// to. Internal to controller/spec/warnings. No I/O.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "controller/spec/findings.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/yaml.h"

namespace muster::warnings {

// An entry of `nodes` and the nodes that it stands for; never none.
struct NodeGroup {
  const YamlNode& entry;
  std::string path;  // "nodes[0]"
  std::vector<const NodeSpec*> nodes;

  const NodeSpec& first() const { return *nodes.front(); }
};

// `root`, `spec` and `names` must outlive it.
class Observer {
 public:
  Observer(const YamlNode& root, const Spec& spec, const SpecNames& names);

  const YamlNode* section(const char* name) const { return yaml_child(&root, name); }
  // The playbooks that the node's image and its role have.
  std::vector<std::string> playbooks_of(const NodeSpec& node) const;
  // True for a playbook whose content is not known here: what it does or reads may be anything.
  bool is_foreign(const std::string& playbook) const { return !known_.count(playbook); }

  // Once per code and place.
  void warn(std::string_view code, const YamlNode& at, std::string path, std::string message) {
    add(code, at.line, at.column, std::move(path), std::move(message));
  }
  void warn(std::string_view code, const YamlEntry& at, std::string path, std::string message) {
    add(code, at.line, at.column, std::move(path), std::move(message));
  }

  const YamlNode& root;
  const Spec& spec;
  const SpecNames& names;         // with the recipes of this controller
  const SpecNames shipped;        // with what the playbooks of this version read
  std::vector<NodeGroup> groups;  // in the order of the file
  std::vector<SpecError> found;

 private:
  void add(std::string_view code, int line, int column, std::string path, std::string message);

  std::set<std::string> known_;  // playbooks whose content is known
  std::set<std::tuple<std::string_view, int, int>> seen_;
};

// One per subject, each in the file of this name.
void hardware_warnings(Observer& observer);
void disk_warnings(Observer& observer);
void unused_warnings(Observer& observer);
void access_warnings(Observer& observer);
void variable_warnings(Observer& observer);
void placeholder_warnings(Observer& observer);

}  // namespace muster::warnings

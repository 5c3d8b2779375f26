// Ansible's inventories in INI form, as far as they say which hosts there are and how ssh reaches them:
//
//     [gpu]
//     gpu[01:16].site.org ansible_host=10.0.3.11 ansible_port=2222 ansible_user=ops
//     [gpu:vars]
//     ansible_user=ops
//     [all:children]
//     gpu
//
// A variable of a host wins over those of its groups, and a group's over those of groups that contain it.
// The port in `NAME:PORT` is a variable of the host. Values of groups that differ, where neither group
// contains the other, are an error: Ansible's choice depends on how deep each lies, and on the alphabet.
// Groups are where a host belongs, not what it is: they are not the groups of a comparison.
// Everything else is left out, and what was left out is named. No I/O.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controller/spec/spec.h"

namespace muster::cli {

struct InventoryHost {
  std::string name;                 // as written, ranges expanded
  std::string address, port, user;  // ansible_host, ansible_port, ansible_user; "": not given
  int line = 0, column = 0;         // where it is first named
};

struct Inventory {
  std::vector<InventoryHost> hosts;  // in order of their first mention
  std::vector<SpecError> errors;
  // Variables that change how Ansible connects, and have no effect here; hosts that are the machine Ansible
  // runs on (ansible_connection=local, also of a group).
  std::set<std::string> ignored;
};

// True if a line is the head of a section, or gives a host one of Ansible's variables.
bool is_inventory(const std::vector<std::string>& lines);
// True if the text is an inventory in YAML, which is not read.
bool is_yaml_inventory(const std::vector<std::string>& lines);

Inventory read_inventory(const std::vector<std::string>& lines);

}  // namespace muster::cli

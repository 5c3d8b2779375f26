// Whether a person can log in to the nodes that muster installs, and administer them: root is locked, and no
// account has a password.
#include <fmt/format.h>

#include <algorithm>

#include "controller/spec/warnings/observer.h"

namespace muster::warnings {

void access_warnings(Observer& o) {
  for (const NodeGroup& group : o.groups) {
    const NodeSpec& node = group.first();
    if (node.image.empty()) continue;
    if (o.spec.users.empty())
      return o.warn(finding::kNoLogin, o.root, "users", "no user is declared, and root is locked");
    if (std::none_of(o.spec.users.begin(), o.spec.users.end(),
                     [](const auto& user) { return user.second.sudo; }))
      return o.warn(finding::kNoLogin, *o.section("users"), "users",
                    "no user has `sudo: true`, and root is locked");
    const auto role = o.spec.roles.find(node.role);
    if (role == o.spec.roles.end()) continue;
    const auto makes_accounts = [&](const std::string& playbook) {
      return playbook == "base" || o.is_foreign(playbook);
    };
    if (std::any_of(role->second.begin(), role->second.end(), makes_accounts)) continue;
    const std::string path = "roles." + node.role;
    o.warn(finding::kNoLogin, *yaml_child(yaml_child(o.section("roles"), node.role.c_str()), "playbooks"),
           path + ".playbooks",
           "the accounts are made by the playbook 'base', which this role does not have");
  }
}

}  // namespace muster::warnings

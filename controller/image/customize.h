// What muster itself adds to a fresh Debian tree: units of the first boot, and the script that tunes the
// tree. Pure: text only. The script runs inside mmdebstrap, as (fake) root, with the tree as its only
// argument.
#pragma once

#include <string>
#include <vector>

#include "controller/image/recipe.h"

namespace muster {

// Files every image has: /state mounted without udev, the host key of sshd kept there, keys that each machine
// makes for itself, sshd without passwords. Nothing that must be unique to a machine stays in a tree.
std::vector<RecipeFile> builtin_files();
// Of a tree: the generator through which systemd rolls back a trial boot. Manifests record whether it exists.
inline constexpr const char* kTrialGenerator = "/usr/lib/systemd/system-generators/muster-trial";
// Whether a path of a tree is such a thing: "/etc/munge/munge.key", "/etc/ssh/ssh_host_rsa_key".
bool is_own_of_machine(const std::string& path);
// File i of `recipe` lies at <overlay>/<i>.
std::string customize_script(const ImageRecipe& recipe, const std::string& overlay);
// After the last layer: what its packages enabled is disabled again, then `units` (argument vectors) run, and
// the tree is cleaned as the first script does.
std::string finish_script(const ImageRecipe& recipe, const std::vector<std::vector<std::string>>& units);

}  // namespace muster

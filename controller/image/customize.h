// What muster adds to a fresh tree: units for the first boot, and the script that configures the tree,
// run inside mmdebstrap as (fake) root with the tree as its only argument. Pure functions, no I/O.
#pragma once

#include <string>
#include <vector>

#include "controller/image/recipe.h"

namespace muster {

// Returns the files that every image has: units that mount /state without udev, keep sshd's host key there
// and generate each machine's own keys; sshd without passwords. A tree contains nothing unique to a machine.
std::vector<RecipeFile> builtin_files();
// Path of the generator through which systemd rolls back a trial boot. Manifests record if it exists.
inline constexpr const char* kTrialGenerator = "/usr/lib/systemd/system-generators/muster-trial";
// True if a path in a tree must be unique to a machine: "/etc/munge/munge.key", "/etc/ssh/ssh_host_rsa_key".
bool is_own_of_machine(const std::string& path);
// Returns the script. The content of the recipe's file number i is at <overlay>/<i>.
std::string customize_script(const ImageRecipe& recipe, const std::string& overlay);
// Returns the script to run after the last layer: it disables what the layers' packages enabled, runs `units`
// (argument vectors), and cleans the tree as the first script does.
std::string finish_script(const ImageRecipe& recipe, const std::vector<std::vector<std::string>>& units);

}  // namespace muster

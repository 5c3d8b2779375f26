// The steps of one node, rendered from the playbooks of its role and the acceptance profile. Pure.
#pragma once

#include <string>

#include "controller/plan/planning.h"

namespace muster {

// Null: there is none. With `complain` that is a problem, said once.
const Playbook* find_playbook(Planning& p, const std::string& name, bool complain);
// The same steps twice: as they are sent, and without what happens to be on the disks, for the digest.
void render(Planning& p, Draft& d, const std::string& image_digest);

}  // namespace muster

// The steps of one node, rendered from the playbooks of its role and the acceptance profile. Pure.
#pragma once

#include <string>

#include "controller/plan/planning.h"

namespace muster {

// Null: there is none. With `complain` that is reported as a problem, once.
const Playbook* find_playbook(Planning& p, const std::string& name, bool complain);
// Its module does not exist in agents of earlier versions: they reject the whole order. Such an agent does
// not report its slot (BootFacts::running) either.
bool has_new_module(const PlannedStep& step);
// Its steps of the phase, from the playbooks of its role; `back`: the last playbook's come first.
std::vector<PlannedStep> steps_of_phase(Planning& p, const Draft& d, const std::string& phase, bool back);
// The same steps twice: as sent, and without the current content of the disks, for the digest.
void render(Planning& p, Draft& d, const std::string& image_digest);

}  // namespace muster

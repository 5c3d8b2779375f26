// The steps of one node, rendered from the playbooks of its role and the acceptance profile. No I/O.
#pragma once

#include <string>

#include "controller/plan/planning.h"

namespace muster {

// Returns the playbook; null if it does not exist, which `complain` reports as a problem, once.
const Playbook* find_playbook(Planning& p, const std::string& name, bool complain);
// True if agents of earlier versions lack the step's module: they would reject the whole order. Such an agent
// does not report its slot (BootFacts::running) either.
bool has_new_module(const PlannedStep& step);
// Returns the node's steps of the phase, from the playbooks of its role; with `back`, last playbook first.
std::vector<PlannedStep> steps_of_phase(Planning& p, const Draft& d, const std::string& phase, bool back);
// Renders the node's steps twice: as sent, and, for the digest, without the disks' current content.
void render(Planning& p, Draft& d, const Digest& image_digest);

}  // namespace muster

// The names of the playbooks and acceptance profiles of this version, for who checks a spec and has no folder
// of them. Thread: pure.
#pragma once

#include "controller/spec/spec.h"

namespace muster {

// Recipes are not among them: images/ is the controller's to look at.
SpecNames shipped_names();

namespace embedded {  // generated at build time from playbooks/: names, each with a blank behind it
extern const char* const playbook_names;
extern const char* const profile_names;
}  // namespace embedded

}  // namespace muster

// The names of the playbooks and acceptance profiles of this version, for checking a spec without having the
// files. Thread safety: stateless functions.
#pragma once

#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"

namespace muster {

// Recipes are not included: the controller reads images/ itself.
SpecNames shipped_names();

namespace embedded {  // generated at build time from playbooks/: names, each followed by a space
extern const char* const playbook_names;
extern const char* const profile_names;
}  // namespace embedded

}  // namespace muster

// Completion of a program's verbs, options and fixed values, as a script for a shell. What no page knows,
// such as names of nodes, is left to the shell, which offers files. Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

#include "base/verb_pages.h"

namespace muster {

// Those that completion_script() knows: bash, fish, zsh.
std::vector<std::string> completion_shells();

// Of a program that has verbs. "" for a shell that is not among them.
std::string completion_script(const std::string& shell, const std::vector<VerbPage>& pages);

}  // namespace muster

// The manual page of a program, with all its verbs, in the language of man(7). Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

#include "base/verb_pages.h"

namespace muster {

// `section`: 1 for a command of users, 8 for a daemon.
std::string manual_page(const std::vector<VerbPage>& pages, int section);

}  // namespace muster

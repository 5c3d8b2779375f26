// The help of a verb, as --help prints it. Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

#include "base/verb_pages.h"

namespace muster {

inline constexpr size_t kHelpWidth = 80;  // of a line at most, whatever the terminal's

// `page`: one of `pages`.
std::string help_text(const std::vector<VerbPage>& pages, const VerbPage& page);

}  // namespace muster

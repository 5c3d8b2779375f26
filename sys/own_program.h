// Programs of the site's own that musterd runs: they get secrets, or run with its privileges. Thread: any.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// `name` in `folder`: invalid if one of them does not exist or is of another kind; denied if users other than
// root and musterd's own can write to it.
Status must_be_own_program(const std::string& folder, const std::string& name);

}  // namespace muster

// A release by its codename or a distribution by its id: the keys of `also`, with which a playbook names more
// packages for some systems. Pure function.
#pragma once

#include <string>

#include "base/distribution.h"
#include "base/result.h"

namespace muster {

// True if the key means this system. invalid: base/distribution.h knows no such release or distribution.
Result<bool> means_system(const std::string& key, const OsRelease& system);

}  // namespace muster

// A consistent copy of the controller's database while it runs. Thread: blocking; for worker threads.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// Copies STATE/muster.db to `path` (0600), which must not exist. The keys in STATE/pki are not in it.
Status backup_state(const std::string& state, const std::string& path);

}  // namespace muster

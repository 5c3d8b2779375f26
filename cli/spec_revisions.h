// Revisions of the spec, as the verbs of `muster spec` show them.
#pragma once

#include <string>

#include "base/json.h"

namespace muster::cli {

// "stored 2026-11-30T02:00:00Z by anna (sudo)"; older controllers recorded no name.
std::string stored_by(const Json& spec);

}  // namespace muster::cli

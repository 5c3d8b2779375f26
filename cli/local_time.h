// Times in the zone of this machine, for people; JSON has milliseconds. They depend on TZ and the zone's
// files.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"

namespace muster::cli {

// "2026-11-20 22:00 CET"
std::string local_time(TimeMs at);
// "2026-12-24", which is its beginning, or "2026-12-24 06:00". invalid: anything else.
Result<TimeMs> parse_local_time(const std::string& text);

}  // namespace muster::cli

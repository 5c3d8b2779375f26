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
// The same, "22:00" (the last one before `now`), "2026-12-24T05:00:00Z", or how long before `now`: "2 h",
// "30m".
Result<TimeMs> parse_since(const std::string& text, TimeMs now);

}  // namespace muster::cli

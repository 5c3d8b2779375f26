// The time zones of this host, as Debian's package tzdata brings them. Thread: any; reads a small file.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time_zone.h"
#include "sys/os.h"

namespace muster {

// `name`: "Europe/Berlin", without ".."; "" for that of /etc/localtime, without which it is UTC. The error
// names the file.
Result<TimeZone> read_zone(const Files& files, const std::string& name);
// False: there are none, so that nothing follows from one that is not found.
bool has_zones(const Files& files);

}  // namespace muster

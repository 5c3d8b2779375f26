// What a host lacks for tests of several hosts: perftest, and open ports. Reads files only, so that the
// command can tell before any load what it will not measure. Thread safety: stateless functions.
#pragma once

#include <string>

#include "base/json.h"
#include "sys/os.h"

namespace muster {

// Returns the firewall that is on and by its rules drops connections of other hosts to the programs that
// measure: "ufw", "firewalld". "": none does, or its rules cannot be read (by a plain user), or something in
// them may let the hosts in. Rules that neither of the two made are not read.
std::string closing_firewall(const Files& files);

// {"perftest": BOOL, "libibverbs": BOOL, "verbs_providers": BOOL, "glibc_2_34": BOOL,
// "firewall": closing_firewall()}. `path`: $PATH. verbs_providers: libibverbs is configured to load any.
// glibc_2_34: not older than that, which muster-accept-gpu and the perftest that muster carries need.
Json look_tools(const Files& files, const std::string& path);

}  // namespace muster

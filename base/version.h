// The version of this program, as in its package, the reports, the API and the agent's hello:
// "0.1.0+20261124.080945.gb953f06", with ".dirty" appended if the tree had changes; "0.1.0" without a known
// commit (cmake/version.cmake). For display and package managers: no decision depends on it, and no digest of
// an image, a step or a plan contains it, since it differs for each commit.
#pragma once

namespace muster {

// Defined in a generated source file, so a new commit recompiles only that file and relinks.
extern const char* const kProgramVersion;

}  // namespace muster

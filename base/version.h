// The version of this program, as its package, the reports, the API and the agent's hello carry it:
// "0.1.0+20261124.080945.gb953f06", with ".dirty" behind it when the tree was changed; "0.1.0" where no
// commit was known (cmake/version.cmake). For people and package managers: nothing is decided by it, and
// no digest of an image, a step or a plan contains it, since each commit has another one.
#pragma once

namespace muster {

// Defined in a source that the build writes: a new commit compiles that one and links.
extern const char* const kProgramVersion;

}  // namespace muster

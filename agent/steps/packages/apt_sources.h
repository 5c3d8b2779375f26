// The origin of a system's own packages, from its apt sources. Reads both forms of source files. Thread:
// plain functions over Files; try_sources() blocks.
#pragma once

#include <string>
#include <vector>

#include "agent/step.h"
#include "base/os.h"

namespace muster::steps {

struct DistributionSource {
  std::string suite;              // VERSION_CODENAME: "trixie"
  std::vector<std::string> uris;  // of the component main of that suite, in the order of the files
};
// VERSION_CODENAME of /etc/os-release: "trixie"; "" if it names none.
std::string release_codename(const Files& files);
// not_found: no source has the release's suite and the component main.
Result<DistributionSource> distribution_source(const Files& files);
// The path by which this system's other sources name the key `key` for these repositories; `key` itself if
// they name none. apt compares paths, not keys: with two paths for one repository it reads no list at all.
// conflict: a different key, or a source without one that is read after `own_file`, the file that will name
// it.
Result<std::string> common_key(const Files& files, const std::vector<std::string>& uris,
                               const std::vector<std::string>& suites, const std::string& key,
                               const std::string& own_file);
// apt reads the source file `candidate` in place of `in_place_of` together with all others (conflict if it
// cannot), then fetches only the lists that it names; a warning about one is a failure. Blocks for up to ten
// minutes.
Status try_sources(StepContext& context, const std::string& candidate, const std::string& in_place_of);

}  // namespace muster::steps

// Reads a system's apt sources, in both file formats: which mirror its own packages come from, and which key
// signs a repository. Thread safety: stateless functions; try_sources() blocks.
#pragma once

#include <string>
#include <vector>

#include "agent/core/step.h"
#include "sys/os.h"

namespace muster::steps {

struct DistributionSource {
  std::string suite;              // the codename in os-release: "trixie"
  std::vector<std::string> uris;  // of that suite's component main, in the order of the files
  std::string key = {};           // kMirrorKey if its sources name that; else ""
};
// not_found: no source has the release's suite and the component main.
Result<DistributionSource> distribution_source(const Files& files);
// The components of the entries in `file`, each once, in order; with a `codename` only of those for that
// release.
std::vector<std::string> components_in(const Files& files, const std::string& file,
                                       const std::string& codename = "");
// Returns the path under which this system's other sources name the key `key` for these repositories; `key`
// itself if none names it. apt compares paths, not keys: if two paths are given for one repository, apt reads
// no list at all. conflict: another source names a different key, or names none and is read after `own_file`,
// the file that will name it. sources.list is no other source of a release whose own file is elsewhere.
Result<std::string> common_key(const Files& files, const std::vector<std::string>& uris,
                               const std::vector<std::string>& suites, const std::string& key,
                               const std::string& own_file);
// Tests the source file `candidate` in place of `in_place_of`: apt must be able to read it together with all
// other sources (conflict if it cannot), and must then fetch the lists that it names without a warning.
// Blocks for up to ten minutes.
Status try_sources(StepContext& context, const std::string& candidate, const std::string& in_place_of);

}  // namespace muster::steps

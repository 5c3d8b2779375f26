// Where a system's own packages come from, as its apt sources say. Reads both forms of source files.
// Thread: plain functions over Files; try_sources() blocks.
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
// VERSION_CODENAME of /etc/os-release: "trixie"; "" where it names none.
std::string release_codename(const Files& files);
// not_found: no source has the release's suite and the component main.
Result<DistributionSource> distribution_source(const Files& files);
// The keyring that a source of this system which has one of `uris` names, where it holds the same keys as
// `keyring` does; else `keyring`. apt reads no list any more where two sources of one address name it
// differently, and distributions ship one keyring under two names (.gpg, .pgp).
std::string keyring_as_named(const Files& files, const std::vector<std::string>& uris,
                             const std::string& keyring);
// apt reads the source file `candidate`, in the place of `replaces`, together with all others of this
// system. Fetches nothing. conflict: with it no list could be read any more, in apt's words.
Status read_together(StepContext& context, const std::string& candidate, const std::string& replaces);
// apt fetches the lists that the source file `candidate` names and no others; a warning about one is a
// failure. Blocks for up to ten minutes.
Status try_sources(StepContext& context, const std::string& candidate);

}  // namespace muster::steps

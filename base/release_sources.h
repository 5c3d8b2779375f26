// The apt sources of a release's own packages: where a mirror has them, and the text of the file that names
// them, one for an image and for the nodes that run it. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/distribution.h"

namespace muster {

struct AptMirror {
  std::string mirror;    // "http://mirror.example/debian", without a slash at the end; empty: not declared
  std::string security;  // URL of the release's -security pocket; kNoMirror: there is none
  bool updates = true;   // the mirror has SUITE-updates
  std::string key = {};  // public keys, ASCII-armoured, if a site signs it again; empty: those of the archive
  bool declared() const { return !mirror.empty(); }
};

inline constexpr const char* kNoMirror = "none";
inline constexpr const char* kMirrorKey = "/etc/apt/keyrings/muster-mirror.asc";  // AptMirror::key, on a node

std::string without_slash(std::string url);  // removes slashes at the end
// Where a mirror of the distribution has the security updates: "http://m/debian-security" for
// "http://m/debian", as full mirrors have both next to each other; the mirror itself if they are in it. Empty
// if that cannot be derived from the URL.
std::string security_of(const Distribution& distribution, const std::string& mirror);

struct AptPocket {
  std::string uri, suite;
  std::vector<std::string> components;
};
// The suite, its updates and its security updates, without those that the mirror lacks.
std::vector<AptPocket> pockets_of(const AptMirror& mirror, const std::string& suite,
                                  const std::vector<std::string>& components);
// The text of `file`: stanzas if its name ends in ".sources", else a line for each pocket. `keyring`: "" if
// no key is named.
std::string sources_text(const std::string& file, const std::vector<AptPocket>& pockets,
                         const std::string& keyring);

}  // namespace muster

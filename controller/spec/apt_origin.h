// The origin of Debian packages, as declared in a spec (network.apt) or an image's recipe. Pure functions.
#pragma once

#include <string>

namespace muster {

struct AptMirror {
  std::string mirror;    // "http://mirror.example/debian", without a slash at the end; empty: not declared
  std::string security;  // URL of the release's -security pocket; kNoMirror: there is none
  bool updates = true;   // the mirror has SUITE-updates
  bool declared() const { return !mirror.empty(); }
};

inline constexpr const char* kNoMirror = "none";

std::string without_slash(std::string url);  // removes slashes at the end
// Returns "http://m/debian-security" for "http://m/debian": full Debian mirrors have both next to each other.
// Empty for a URL that does not end in /debian, since the location is then unknown.
std::string security_beside(const std::string& mirror);
// Returns the host of "http://HOST[:PORT]/PATH" (or https). Empty for anything else, including a URL with a
// user and password, spaces, a query, or a path that leaves the mirror.
std::string mirror_host(const std::string& url);
// Returns the host of "http://HOST[:PORT]" (or https), with or without a slash at the end; else empty.
std::string url_host(std::string url);

}  // namespace muster

// Where Debian packages come from, as a spec (network.apt) or an image's recipe says. Pure.
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

std::string without_slash(std::string url);  // none at the end
// "http://m/debian-security" for "http://m/debian": the two are side by side on full Debian mirrors. Empty
// for a URL that ends otherwise: then it is unknown.
std::string security_beside(const std::string& mirror);
// The host of "http://HOST[:PORT]/PATH", https likewise; empty for anything else: a user and password,
// spaces, a query, a path that leaves the mirror.
std::string mirror_host(const std::string& url);
// The host of "http://HOST[:PORT]", with or without a slash at the end; https likewise; else empty.
std::string url_host(std::string url);

}  // namespace muster

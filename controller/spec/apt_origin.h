// URLs of package mirrors and proxies, as declared in a spec. Pure functions.
#pragma once

#include <string>

namespace muster {

// Returns the host of "http://HOST[:PORT]/PATH" (or https). Empty for anything else, including a URL with a
// user and password, spaces, a query, or a path that leaves the mirror.
std::string mirror_host(const std::string& url);
// Returns the host of "http://HOST[:PORT]" (or https), with or without a slash at the end; else empty.
std::string url_host(std::string url);

}  // namespace muster

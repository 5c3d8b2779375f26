// Package mirrors and proxies as declared in a spec: where, and by which URLs. Pure functions.
#pragma once

#include <string>

#include "base/distribution.h"

namespace muster {

// The section of a spec that declares a distribution's mirror: "network.apt", and for others than the default
// "network.apt.ID".
std::string apt_path(const Distribution& distribution);
// Returns the host of "http://HOST[:PORT]/PATH" (or https). Empty for anything else, including a URL with a
// user and password, spaces, a query, or a path that leaves the mirror.
std::string mirror_host(const std::string& url);
// Returns the host of "http://HOST[:PORT]" (or https), with or without a slash at the end; else empty.
std::string url_host(std::string url);

}  // namespace muster

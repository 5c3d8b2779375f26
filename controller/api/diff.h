// Line diff of two texts, as `diff -u` prints it. Pure.
#pragma once

#include <string>

namespace muster::api {

// Empty when they are equal.
std::string unified_diff(const std::string& from, const std::string& to, const std::string& from_name,
                         const std::string& to_name);

}  // namespace muster::api

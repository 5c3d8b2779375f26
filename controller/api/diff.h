// Line diff of two texts in the format of `diff -u`. Pure function, no I/O.
#pragma once

#include <string>

namespace muster::api {

// Returns "" if the texts are equal.
std::string unified_diff(const std::string& from, const std::string& to, const std::string& from_name,
                         const std::string& to_name);

}  // namespace muster::api

// Line diff of two texts. Pure function.
#pragma once

#include <string>

namespace muster {

// In the format of `diff -u`; "" if the texts are equal.
std::string unified_diff(const std::string& from, const std::string& to, const std::string& from_name,
                         const std::string& to_name);

}  // namespace muster

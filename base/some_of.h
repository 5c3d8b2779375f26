// Lists of names for people. Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

namespace muster {

// "a, b and 3 more", with at most `most` names.
std::string some_of(const std::vector<std::string>& names, size_t most);

}  // namespace muster

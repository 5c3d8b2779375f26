// Content of /etc/resolv.conf, at installation and whenever the node is configured. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace muster {

// Returns the name servers in order, and the search domains. Without servers: a comment only, because
// programs need the file; every look-up then fails at once.
std::string resolver_text(const std::vector<std::string>& dns, const std::vector<std::string>& search);

// Returns "a b c".
std::string joined_by_blanks(const std::vector<std::string>& words);

}  // namespace muster

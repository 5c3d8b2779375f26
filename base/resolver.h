// /etc/resolv.conf as muster writes it, at installation and whenever the node is configured. Pure.
#pragma once

#include <string>
#include <vector>

namespace muster {

// Name servers in their order, and the search domains. Without servers: a file with a comment, because
// programs need one, with which every look-up fails at once.
std::string resolver_text(const std::vector<std::string>& dns, const std::vector<std::string>& search);

// "a b c"
std::string joined_by_blanks(const std::vector<std::string>& words);

}  // namespace muster

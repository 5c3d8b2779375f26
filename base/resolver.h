// /etc/resolv.conf as muster writes it, at installation and whenever the node is configured. Pure.
#pragma once

#include <string>
#include <vector>

namespace muster {

// Name servers in the order they are asked, and the domains that names without a dot are tried in. Without
// servers: a file that says so, because programs want one, and with which every look-up fails at once.
std::string resolver_text(const std::vector<std::string>& dns, const std::vector<std::string>& search);

// "a b c"
std::string joined_by_blanks(const std::vector<std::string>& words);

}  // namespace muster

// Names of nodes: host names that are not keywords of a tool whose files muster writes, and the name that a
// machine gets which is called otherwise. No I/O.
#pragma once

#include <string>

namespace muster {

// Returns what is wrong with a node's name; "" if it is valid.
std::string wrong_host_name(const std::string& name);

// Returns the name for a machine that is called `written`: a host name, a domain name or an address, without
// user, brackets and port. "DGX_01" -> "dgx-01", "gpu01.site.org" -> "gpu01-site-org", "10.0.0.11" ->
// "ip-10-0-0-11". It depends on `written` alone, so a history goes on whatever else is listed; a name that is
// valid stays as it is. "" if no letter or digit is in it. The result may still be a keyword
// (wrong_host_name()).
std::string host_label(const std::string& written);

}  // namespace muster

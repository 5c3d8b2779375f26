// The lab's package proxy: through it guests reach the host's package mirrors, and nothing else outside. Two
// nginx processes: a caching one on the host, which listens on a Unix socket in DIR, and one inside the
// namespace on <controller>:3142, which forwards to that socket: no link, address or route is added to the
// host. Usable as a proxy (Acquire::http::Proxy) and as a mirror (http://10.20.0.1:3142/debian). The mirrors
// are those that the host's apt uses at run time. Thread safety: free functions without shared state.
// state.
#pragma once

#include <string>
#include <vector>

#include "lab/lab_dir.h"
#include "lab/lab_spec.h"
#include "sys/os.h"

namespace muster::lab {

constexpr int kAptProxyPort = 3142;

// Returns the host names of the plain-HTTP repositories of the host's apt, in apt's order, each once.
std::vector<std::string> mirror_hosts(const std::string& indextargets_output);
std::string host_side_config(const LabDir& dir, const std::vector<std::string>& hosts);
std::string lab_side_config(const LabDir& dir, const LabSpec& spec);

// Starts both; returns the proxy's URL. `not_found` if nginx or a mirror is missing: a lab runs without it.
Result<std::string> start_apt_proxy(Process& process, const LabDir& dir, const LabSpec& spec,
                                    const std::string& space);

}  // namespace muster::lab

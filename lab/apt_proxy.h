// The lab's package proxy: guests reach the host's package mirrors through it, and nothing else outside.
//
// Two nginx processes: one on the host's side, caching, that listens on a Unix socket in DIR; one inside the
// namespace on <controller>:3142 that forwards to that socket. So no link, address or route is added to the
// host. It serves both spellings: as a proxy (Acquire::http::Proxy) and as a mirror
// (http://10.20.0.1:3142/debian). Mirrors come from the host's apt at run time. Thread: free functions
// without shared state.
#pragma once

#include <string>
#include <vector>

#include "base/os.h"
#include "lab/lab_dir.h"
#include "lab/lab_spec.h"

namespace muster::lab {

constexpr int kAptProxyPort = 3142;

// Host names of the plain-HTTP repositories the host's apt uses, in apt's order, without doubles.
std::vector<std::string> mirror_hosts(const std::string& indextargets_output);
std::string host_side_config(const LabDir& dir, const std::vector<std::string>& hosts);
std::string lab_side_config(const LabDir& dir, const LabSpec& spec);

// Starts both; returns the proxy's URL. `not_found` when nginx or a mirror is missing: a lab can do without.
Result<std::string> start_apt_proxy(Process& process, const LabDir& dir, const LabSpec& spec,
                                    const std::string& space);

}  // namespace muster::lab

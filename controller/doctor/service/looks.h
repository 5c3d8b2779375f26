// What `muster doctor` looks at on this machine and around it, one function per value, each under a deadline
// of its own. Nothing is changed. Thread: blocking; for worker threads.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controller/doctor/judges.h"
#include "controller/image/image.h"
#include "controller/image/package_list.h"
#include "controller/options/options.h"

namespace muster::doctor {

struct Looks {
  std::function<Result<DhcpSeen>(const std::string& address)> dhcp;  // dhcp_probe.h
  // controller/image/mirror_look.h
  std::function<std::map<std::string, Result<std::string>>(const std::vector<ImageRequest>& images)> mirrors;
  std::function<Result<uint64_t>()> free_bytes;  // of the state folder
  std::function<Result<bool>()> synchronized;    // this machine's clock
  std::function<Result<std::vector<OpenPort>>()> open_ports;
  std::function<Result<PackageList>()> packages;  // installed here
  std::function<Result<int>()> gpu_cuda;          // of muster-accept-gpu
};
// `options` must outlive them.
Looks looks_at_this_machine(const DaemonOptions& options);

}  // namespace muster::doctor

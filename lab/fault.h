// The faults of `muster lab break`, and their syntax on the command line and on the control socket. Thread
// safety: value types and stateless functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace muster::lab {

struct Break {
  std::string node, fault;
  std::string network_switch;  // the network whose switch fails, instead of node and fault
  int64_t seconds = 0;
  std::string drive, rate, file_system;  // of the faults that take --drive, --rate, --fs
  std::string network;                   // net-cut, shape, pull-cable, port-errors; empty: provisioning
  int64_t gpu = -1;                      // gpu-xid: number of the simulated GPU, from 0
  int64_t count = 0;                     // port-errors: number of frames; 0 means one
  bool heal = false;
};
Json to_json(const Break& request);
Result<Break> break_from_json(const Json& json);

// Returns the fault's name in `lab status`: "net-cut", "net-cut rail0".
std::string shown_name(const Break& request);

const std::map<std::string, std::string>& fault_list();

// Parses the command line: NODE FAULT [ARGUMENT], or [SECONDS] for a switch. Code::invalid: no match.
Status take_words(Break& request, const std::vector<std::string>& words);

}  // namespace muster::lab

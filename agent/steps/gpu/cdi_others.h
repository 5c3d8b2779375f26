// Files of others that name the same devices as ours to container engines.
//
// Engines read all of /etc/cdi and then all of /run/cdi, which wins. A device that two files of one folder
// name is a device of neither: no container finds a GPU any more. So what a host has of its own, from
// NVIDIA's Container Toolkit or by hand, is looked at before ours is written. Only as much of YAML and
// JSON is read as such files have: keys with a plain value behind them. Thread: plain functions over Files.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/os.h"

namespace muster::steps {

struct CdiOthers {
  std::string served_by;  // the file that engines take all these devices from; "" when it is none
  std::string problem;    // why engines find no device, or a wrong one, and what to do; "" when there is none
  bool ours_in_the_way = false;  // with `own` beside it they would find none
};

// `devices`: names that `own` has of the kind, "0", "1", "all".
CdiOthers other_cdi_files(const Files& files, const std::string& own, const std::string& kind,
                          const std::set<std::string>& devices);

// Values of a key wherever it stands in the text: plain_values_of("- name: \"0\"", "name") is {"0"}.
std::vector<std::string> plain_values_of(const std::string& text, const std::string& key);

}  // namespace muster::steps

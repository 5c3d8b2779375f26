// Other files that name the same devices to container engines.
//
// Engines read all of /etc/cdi and then all of /run/cdi, which wins. A device that two files of one folder
// define is ignored: containers find no GPU any more. So the host's own files, from NVIDIA's Container
// Toolkit or by hand, are read before ours is written. Only the YAML and JSON of such files is supported:
// keys with a plain value. Thread: plain functions over Files.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/os.h"

namespace muster::steps {

struct CdiOthers {
  std::string served_by;  // the file from which engines read all these devices; "" if none
  std::string problem;    // why engines find no device, or a wrong one, and what to do; "" if all is well
  bool ours_in_the_way = false;  // with `own` as well they would find none
};

// `devices`: names that `own` has of the kind, "0", "1", "all".
CdiOthers other_cdi_files(const Files& files, const std::string& own, const std::string& kind,
                          const std::set<std::string>& devices);

// Values of a key anywhere in the text: plain_values_of("- name: \"0\"", "name") is {"0"}.
std::vector<std::string> plain_values_of(const std::string& text, const std::string& key);

}  // namespace muster::steps

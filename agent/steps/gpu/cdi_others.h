// CDI files other than muster's that define the same devices for container engines.
//
// Engines read all of /etc/cdi and then all of /run/cdi, which takes precedence. They ignore a device that
// two files in one folder define, so containers would find no GPU. Therefore the host's own files, written by
// NVIDIA's Container Toolkit or by hand, are read before muster writes its file. Of YAML and JSON, only keys
// with a plain value are supported: such files have no others. Thread safety: stateless functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sys/os.h"

namespace muster::steps {

struct CdiOthers {
  std::string served_by;  // the file from which engines read all these devices; "" if none
  std::string problem;    // why engines find no device, or a wrong one, and what to do; "" if all is well
  bool ours_in_the_way = false;  // engines would find no device if `own` existed as well
};

// Checks the other files against `own`, which defines `devices` ("0", "1", "all") of this kind.
CdiOthers other_cdi_files(const Files& files, const std::string& own, const std::string& kind,
                          const std::set<std::string>& devices);

// Returns the values of a key anywhere in the text: plain_values_of("- name: \"0\"", "name") is {"0"}.
std::vector<std::string> plain_values_of(const std::string& text, const std::string& key);

}  // namespace muster::steps

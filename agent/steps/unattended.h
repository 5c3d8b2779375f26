// The environment of programs that may install packages: dpkg does not prompt, and needrestart only lists
// what should be restarted. A restart of slurmd or Docker in the middle of a step would end jobs.
#pragma once

#include <map>
#include <string>

namespace muster::steps {

inline std::map<std::string, std::string> unattended_environment() {
  return {{"DEBIAN_FRONTEND", "noninteractive"}, {"NEEDRESTART_MODE", "l"}};
}

}  // namespace muster::steps

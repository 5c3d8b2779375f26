// Reads a playbook from YAML. Pure functions, no I/O.
#pragma once

#include <string>
#include <vector>

#include "controller/spec/playbook.h"

namespace muster {

struct ParsedPlaybook {
  Playbook playbook;
  std::vector<SpecError> errors;
};
ParsedPlaybook parse_playbook(const std::string& text);

}  // namespace muster

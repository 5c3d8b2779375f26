// Reads the spec that an operator names, with everything that it refers to on the operator's disk: the lab's
// key, the results that GPUs are compared with (cli/carried_files.h), and the texts of the playbooks that it
// names by path (relative to the spec's folder).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster::cli {

struct SpecFile {
  std::string text;               // for the controller
  std::vector<SpecError> errors;  // of `playbooks:`: a missing path, a text that cannot be carried
};
// An Error: the spec itself cannot be read. A spec with errors of its own is returned as it is.
Result<SpecFile> read_spec_file(const std::string& path);

}  // namespace muster::cli

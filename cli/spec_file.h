// Reads the spec that an operator names, with everything that it refers to on the operator's disk: the lab's
// key, the reference results for GPUs (cli/carried_files.h), and the texts of the playbooks that it names by
// path (relative to the spec's folder).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster::cli {

struct SpecFile {
  std::string text;               // as sent to the controller
  std::vector<SpecError> errors;  // of the key `playbooks`: missing files, texts that cannot be embedded
};
// Returns an Error if the spec itself cannot be read. A spec with errors in its content is returned as it is.
Result<SpecFile> read_spec_file(const std::string& path);

}  // namespace muster::cli
